{{/*
A program of the control plane. On the hosts' network, because it is what gives nodes their pod network; with no right on
the host, though: no user but its own, no capability, nothing to write to.
*/}}
{{- define "unbounded.controller" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "unbounded.metadata" . | nindent 2 }}
spec:
  replicas: {{ .Values.replicas }}
  # Each replica takes a port of its host: on a cluster with as many nodes as replicas an old one has to go first.
  strategy:
    {{- include "unbounded.updateStrategy" (list . (dict "type" "RollingUpdate" "rollingUpdate" (dict "maxSurge" 0 "maxUnavailable" 1))) | nindent 4 }}
  selector:
    matchLabels:
      {{- include "unbounded.labels" . | nindent 6 }}
  template:
    metadata:
      {{- include "unbounded.podMetadata" . | nindent 6 }}
    spec:
      serviceAccountName: {{ .Chart.Name }}
      hostNetwork: true
      dnsPolicy: Default
      {{- include "unbounded.placement" . | nindent 6 }}
      affinity:
        {{- if .Values.affinity }}
        {{- toYaml .Values.affinity | nindent 8 }}
        {{- else }}
        {{- include "unbounded.controllerAffinity" . | nindent 8 }}
        {{- end }}
      {{- with .Values.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        seccompProfile: { type: RuntimeDefault }
      containers:
        - name: {{ .Chart.Name }}
          {{- include "unbounded.image" . | nindent 10 }}
          args:
            - {{ include "unbounded.bundle" . }}
            - --lease-namespace={{ .Release.Namespace }}
            {{- include "unbounded.healthAddress" . | nindent 12 }}
            {{- include "unbounded.flags" . | nindent 12 }}
          env:
            - { name: POD_NAME, valueFrom: { fieldRef: { fieldPath: metadata.name } } }
            {{- include "unbounded.hostIP" . | nindent 12 }}
            {{- include "unbounded.apiServer" . | nindent 12 }}
            {{- with include "unbounded.caBundleOf" . }}
            - { name: NODE_EXTRA_CA_CERTS, value: /etc/unbounded/ca/ca.pem }
            # Node reads the file at its start: with another bundle there are other pods.
            - { name: CA_BUNDLE_DIGEST, value: {{ . | sha256sum | trunc 8 | quote }} }
            {{- end }}
            {{- with include "unbounded.env" . }}
            {{- . | trim | nindent 12 }}
            {{- end }}
          {{- include "unbounded.probes" . | nindent 10 }}
          {{- if include "unbounded.caBundleOf" . }}
          volumeMounts:
            - { name: ca, mountPath: /etc/unbounded/ca, readOnly: true }
          {{- end }}
          resources:
            {{- toYaml .Values.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
      {{- if include "unbounded.caBundleOf" . }}
      volumes:
        - { name: ca, configMap: { name: tailnet-ca } }
      {{- end }}
{{- if and .Values.podDisruptionBudget.enabled (gt (int .Values.replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "unbounded.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ .Values.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "unbounded.labels" . | nindent 6 }}
{{- end }}
{{- end }}

{{- define "unbounded.controllerAffinity" -}}
nodeAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      preference:
        matchExpressions: [{ key: node-role.kubernetes.io/control-plane, operator: Exists }]
podAntiAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels:
          {{- include "unbounded.labels" . | nindent 10 }}
{{- end }}

{{/* Of the controllers one talks to a control server of the tailnet. */}}
{{- define "unbounded.caBundleOf" -}}
{{- if eq .Chart.Name "tailnet-registrar" }}{{ (include "unbounded.global" . | fromYaml).tailnet.caBundle | default "" }}{{ end -}}
{{- end }}
