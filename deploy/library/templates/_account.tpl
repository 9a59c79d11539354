{{/* Accounts of programs, and the roles of agents. */}}

{{/* The account of a program. */}}
{{- define "unbounded.account" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Chart.Name }}
  namespace: {{ .Release.Namespace }}
  {{- with (.Values.serviceAccount).annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/*
By this label the role of an agent's account has the rights of a ClusterRole, whichever chart brings it: Kubernetes aggregates them. Called with
the agent's name.
*/}}
{{- define "unbounded.aggregateTo" -}}
net.unbounded-cloud.io/aggregate-to-{{ . }}: 'true'
{{- end }}

{{/* The role of an agent's account: all that is labelled for it, and nothing of its own. */}}
{{- define "unbounded.aggregatedRole" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: unbounded:{{ .Chart.Name }}-aggregated
aggregationRule:
  clusterRoleSelectors:
    - matchLabels:
        {{- include "unbounded.aggregateTo" .Chart.Name | nindent 8 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: unbounded:{{ .Chart.Name }}-aggregated
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: unbounded:{{ .Chart.Name }}-aggregated
subjects:
  - kind: ServiceAccount
    name: {{ .Chart.Name }}
    namespace: {{ .Release.Namespace }}
{{- end }}
