{{/*
What admission policies have in common. A policy says which fields of an object an account may write, where RBAC can only say
which objects. It is bound to the user names of our own accounts, so nobody else's requests are affected, and fails closed.
*/}}

{{/* Whose requests a policy is about. */}}
{{- define "unbounded.fromAccount" -}}
matchConditions:
  - name: from-{{ .Chart.Name }}
    expression: request.userInfo.username == 'system:serviceaccount:{{ .Release.Namespace }}:{{ .Chart.Name }}'
{{- end }}

{{/* Called with the policy's name. */}}
{{- define "unbounded.bind" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ . }}
spec:
  policyName: {{ . }}
  validationActions: [Deny]
{{- end }}

{{/* CEL: whether a label selector selects labels. Of a list: the selector, the labels. */}}
{{- define "unbounded.cel.selects" -}}
{{- $selector := index . 0 }}{{ $labels := index . 1 -}}
{{ $selector }}.?matchLabels.orValue({}).all(k, k in {{ $labels }} && {{ $labels }}[k] == {{ $selector }}.matchLabels[k])
&& {{ $selector }}.?matchExpressions.orValue([]).all(r,
r.operator == 'Exists' ? r.key in {{ $labels }} : r.operator == 'DoesNotExist' ? !(r.key in {{ $labels }})
: r.operator == 'In' ? r.key in {{ $labels }} && {{ $labels }}[r.key] in r.?values.orValue([])
: !(r.key in {{ $labels }} && {{ $labels }}[r.key] in r.?values.orValue([])))
{{- end }}

{{/* CEL: an update leaves labels, annotations and owners as they were. */}}
{{- define "unbounded.cel.sameMarks" -}}
object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({})
&& object.metadata.?annotations.orValue({}) == oldObject.metadata.?annotations.orValue({})
&& object.metadata.?ownerReferences.orValue([]) == oldObject.metadata.?ownerReferences.orValue([])
{{- end }}

{{/*
CEL: a condition of a Node that our program writes is no longer than our programs write it (NODE_CONDITION_BOUNDS of libs/kube). The
API server bounds none of these texts. Called with the name of the variable that has the conditions of before: they are not looked at.
*/}}
{{- define "unbounded.cel.smallConditions" -}}
all(c, c in {{ . }} || (c.type.size() <= 64 && c.?reason.orValue('').size() <= 128 && c.?message.orValue('').size() <= 4096))
{{- end }}

{{/* A controller that protects objects of a kind changes one finalizer of them. Called with (list scope PLURAL KIND). */}}
{{- define "unbounded.protectorPolicy" -}}
{{- $scope := index . 0 -}}
{{- $name := printf "unbounded-%s-%s" $scope.Chart.Name (index . 1) -}}
{{- $message := printf "%s may change only the finalizer net.unbounded-cloud.io/protection of a %s" $scope.Chart.Name (index . 2) -}}
# {{ $scope.Chart.Name }} protects a {{ index . 2 }} by its finalizer; what the object says is for people alone.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: ['net.unbounded-cloud.io']
        apiVersions: ['*']
        resources: [{{ index . 1 }}]
        operations: [CREATE, UPDATE]
  {{- include "unbounded.fromAccount" $scope | nindent 2 }}
  validations:
    - expression: request.operation == 'UPDATE' && object.?spec == oldObject.?spec
      message: '{{ $message }}, not its spec'
      reason: Forbidden
    - expression: >-
        request.operation == 'UPDATE' && {{ include "unbounded.cel.sameMarks" $scope | nindent 8 }}
      message: '{{ $message }}, not its labels, annotations or owners'
      reason: Forbidden
    - expression: >-
        request.operation == 'UPDATE'
        && object.metadata.?finalizers.orValue([]).filter(f, f != 'net.unbounded-cloud.io/protection')
        == oldObject.metadata.?finalizers.orValue([]).filter(f, f != 'net.unbounded-cloud.io/protection')
      message: '{{ $message }}, no other'
      reason: Forbidden
---
{{ include "unbounded.bind" $name }}
{{- end }}

{{/* RBAC cannot restrict a create by name: without this an account could take the Leases of others. */}}
{{- define "unbounded.leasePolicy" -}}
{{- $name := printf "unbounded-%s-lease" .Chart.Name -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [coordination.k8s.io]
        apiVersions: ['*']
        resources: [leases]
        operations: [CREATE, UPDATE]
  {{- include "unbounded.fromAccount" . | nindent 2 }}
  validations:
    - expression: object.metadata.name == '{{ .Chart.Name }}' && object.metadata.namespace == '{{ .Release.Namespace }}'
      messageExpression: >-
        '{{ .Chart.Name }} may write only the Lease {{ .Release.Namespace }}/{{ .Chart.Name }}, not ' + object.metadata.namespace + '/' + object.metadata.name
      reason: Forbidden
    # Marks that an administrator made may stay.
    - expression: >-
        (request.operation == 'CREATE'
        ? !has(object.metadata.labels) && !has(object.metadata.annotations) && !has(object.metadata.ownerReferences) && !has(object.metadata.finalizers)
        : {{ include "unbounded.cel.sameMarks" . | nindent 8 }})
        && object.?spec.?holderIdentity.orValue('').size() <= 512 && object.?spec.?preferredHolder.orValue('') == ''
      message: '{{ .Chart.Name }} may write a Lease without labels, annotations, owners and finalizers, and a holder of at most 512 characters'
      reason: Forbidden
---
{{ include "unbounded.bind" $name }}
{{- end }}

{{/*
Events are told in the name of the account, about nodes and our kinds: all of these are without a namespace, and their Events
in "default". An agent tells of its own Node alone, static-egress and tailnet-registrar of pods and of objects in namespaces as well. What an Event says Kubernetes
lets nobody change.

Events are small, so that a stolen token does not fill the store of the API server with few of them; the rate no policy sees (see
docs/operations.md). Reason, action, reportingInstance and note the API server bounds itself in events.k8s.io (EVENT_BOUNDS of libs/kube), but not
in core/v1: requests there come here too, by the match policy Equivalent, which is the default. managedFields count, as a request may bring
its own.
*/}}
{{- define "unbounded.eventPolicy" -}}
{{- $name := printf "unbounded-%s-events" .Chart.Name -}}
{{- $controller := printf "unbounded/%s" .Chart.Name -}}
{{- $hasNamespaces := has .Chart.Name (list "static-egress" "tailnet-registrar") -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: ['events.k8s.io']
        apiVersions: ['*']
        resources: [events]
        operations: [CREATE, UPDATE]
  {{- include "unbounded.fromAccount" . | nindent 2 }}
  variables:
    - name: regarding
      expression: object.?regarding.orValue({})
    - name: node
      expression: >-
        request.userInfo.?extra['authentication.kubernetes.io/node-name'].orValue(['']).join('')
    {{- if eq .Chart.Name "node-dataplane" }}
    # What the names of its Events begin with, as libs/kube cuts it.
    - name: subject
      expression: >-
        variables.node.size() <= 200 ? variables.node : variables.node.substring(0, 200)
    {{- end }}
  validations:
    - expression: request.requestResource.group == 'events.k8s.io'
      message: '{{ .Chart.Name }} may write Events by events.k8s.io only, where the API server bounds their texts'
      reason: Forbidden
    - expression: >-
        object.?reportingController.orValue('') == '{{ $controller }}'
        && (request.operation == 'CREATE' || oldObject.?reportingController.orValue('') == '{{ $controller }}')
      message: '{{ .Chart.Name }} may write only Events of the reportingController {{ $controller }}'
      reason: Forbidden
    {{- if eq .Chart.Name "node-dataplane" }}
    - expression: >-
        variables.node != '' && variables.regarding.?kind.orValue('') == 'Node' && variables.regarding.?apiVersion.orValue('') == 'v1'
        && variables.regarding.?name.orValue('') == variables.node
      messageExpression: >-
        'the node agent of ' + variables.node + ' may write Events only about its own Node, not about '
        + variables.regarding.?kind.orValue('') + ' ' + variables.regarding.?name.orValue('')
      reason: Forbidden
    # No policy sees how many Events there are, but names are unique: one agent has 4,096 of them at a time.
    - expression: >-
        request.operation == 'UPDATE'
        || (object.metadata.name.startsWith(variables.subject + '.') && object.metadata.name.substring(variables.subject.size() + 1).matches('^[0-9a-f]{3}$'))
      messageExpression: >-
        'the node agent of ' + variables.node + ' may write only Events of the names ' + variables.subject + '.000 to ' + variables.subject + '.fff'
      reason: Forbidden
    {{- else if $hasNamespaces }}
    - expression: >-
        (variables.regarding.?kind.orValue('') == 'Pod' && variables.regarding.?apiVersion.orValue('') == 'v1')
        || variables.regarding.?apiVersion.orValue('').startsWith('net.unbounded-cloud.io/')
      messageExpression: >-
        '{{ .Chart.Name }} may write Events only about Pods and kinds of net.unbounded-cloud.io, not about '
        + variables.regarding.?kind.orValue('') + ' ' + variables.regarding.?name.orValue('')
      reason: Forbidden
    {{- else }}
    - expression: >-
        (variables.regarding.?kind.orValue('') == 'Node' && variables.regarding.?apiVersion.orValue('') == 'v1')
        || variables.regarding.?apiVersion.orValue('').startsWith('net.unbounded-cloud.io/')
      messageExpression: >-
        '{{ .Chart.Name }} may write Events only about Nodes and kinds of net.unbounded-cloud.io, not about '
        + variables.regarding.?kind.orValue('') + ' ' + variables.regarding.?name.orValue('')
      reason: Forbidden
    {{- end }}
    {{- if $hasNamespaces }}
    # The API server sees to it that an Event is in the namespace of its object.
    - expression: '!has(object.related)'
      message: '{{ .Chart.Name }} may write Events only about one object'
      reason: Forbidden
    {{- else }}
    - expression: variables.regarding.?namespace.orValue('') == '' && !has(object.related)
      message: '{{ .Chart.Name }} may write Events only about one object without a namespace'
      reason: Forbidden
    {{- end }}
    - expression: >-
        !has(object.metadata.labels) && !has(object.metadata.annotations) && !has(object.metadata.ownerReferences) && !has(object.metadata.finalizers)
      message: '{{ .Chart.Name }} may write only Events without labels, annotations, owners and finalizers'
      reason: Forbidden
    - expression: >-
        variables.regarding.?fieldPath.orValue('') == '' && variables.regarding.?resourceVersion.orValue('') == ''
        && variables.regarding.?uid.orValue('').size() <= 253 && variables.regarding.?name.orValue('').size() <= 253
        && variables.regarding.?kind.orValue('').size() <= 64 && variables.regarding.?apiVersion.orValue('').size() <= 128
      message: '{{ .Chart.Name }} may write only Events that name their object by apiVersion, kind, name and uid'
      reason: Forbidden
    - expression: >-
        object.metadata.?managedFields.orValue([]).size() <= 4
        && object.metadata.?managedFields.orValue([]).all(m, m.?fieldsV1.orValue({}).all(k,
          k in ['f:action', 'f:eventTime', 'f:note', 'f:reason', 'f:regarding', 'f:reportingController', 'f:reportingInstance', 'f:series', 'f:type']
          && m.fieldsV1[k].all(l, l in ['.', 'f:apiVersion', 'f:count', 'f:kind', 'f:lastObservedTime', 'f:name', {{ if $hasNamespaces }}'f:namespace', {{ end }}'f:uid'] && m.fieldsV1[k][l].size() == 0)))
      message: '{{ .Chart.Name }} may write only Events whose managedFields name their fields'
      reason: Forbidden
---
{{ include "unbounded.bind" $name }}
{{- end }}

{{/* Events about objects without a namespace are in "default": RBAC keeps the account to it. */}}
{{- define "unbounded.eventAccess" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: unbounded:{{ .Chart.Name }}
  namespace: default
rules:
  - apiGroups: ['events.k8s.io']
    resources: [events]
    verbs: [create, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: unbounded:{{ .Chart.Name }}
  namespace: default
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: unbounded:{{ .Chart.Name }}
subjects:
  - kind: ServiceAccount
    name: {{ .Chart.Name }}
    namespace: {{ .Release.Namespace }}
{{- end }}
