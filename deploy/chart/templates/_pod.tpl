{{/* What pods of all programs have in common. Each is called with the scope of a program's own chart. */}}

{{- define "unbounded.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "unbounded.metadata" -}}
name: {{ .Chart.Name }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "unbounded.labels" . | nindent 2 }}
  app.kubernetes.io/part-of: unbounded
  app.kubernetes.io/version: {{ .Values.global.image.tag | default .Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "unbounded.podMetadata" -}}
labels:
  {{- include "unbounded.labels" . | nindent 2 }}
{{- with .Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
An image by name, and by tag or digest: those of the program where it has its own, else those of all programs. Called with
(list scope VALUES), VALUES being the program's repository, tag and digest.
*/}}
{{- define "unbounded.reference" -}}
{{- $scope := index . 0 -}}
{{- $own := index . 1 | default dict -}}
{{- $all := $scope.Values.global.image -}}
{{- $version := ternary $own $all (or (not (empty $own.tag)) (not (empty $own.digest))) -}}
{{- $tag := $version.tag | default (ternary "" $scope.Chart.AppVersion (not (empty $version.digest))) -}}
{{- $own.repository | default $all.repository }}{{ with $tag }}:{{ . }}{{ end }}{{ with $version.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "unbounded.image" -}}
image: {{ include "unbounded.reference" (list . .Values.image) | quote }}
imagePullPolicy: {{ .Values.global.image.pullPolicy }}
{{- end }}

{{/* Values that an installation of before does not have, and --reuse-values does not add, have their defaults here as well. */}}
{{- define "unbounded.keyFolder" -}}
{{ (.Values.global.host).keys | default "/etc/wireguard" }}
{{- end }}

{{- define "unbounded.bundle" -}}
/unbounded/apps/{{ .Chart.Name }}/dist/main.mjs
{{- end }}

{{/* Metrics on the node's own address; needs HOST_IP in the environment. */}}
{{- define "unbounded.healthAddress" -}}
- --health-address={{ .Values.healthAddress | default "$(HOST_IP)" }}
{{- end }}

{{- define "unbounded.hostIP" -}}
- { name: HOST_IP, valueFrom: { fieldRef: { fieldPath: status.hostIP } } }
{{- end }}

{{/* The API server by an address of the hosts' network instead of the Service's. */}}
{{- define "unbounded.apiServer" -}}
{{- with .Values.global.apiServer }}
{{- if .host }}
- { name: KUBERNETES_SERVICE_HOST, value: {{ .host | quote }} }
- { name: KUBERNETES_SERVICE_PORT, value: {{ .port | quote }} }
{{- end }}
{{- end }}
{{- end }}

{{- define "unbounded.flags" -}}
- --log-level={{ .Values.logLevel }}
- --health-port={{ .Values.healthPort }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "unbounded.probes" -}}
ports:
  - { name: health, containerPort: {{ .Values.healthPort }} }
livenessProbe:
  httpGet: { host: 127.0.0.1, path: /healthz, port: health }
  initialDelaySeconds: 10
  failureThreshold: 6
readinessProbe:
  httpGet: { host: 127.0.0.1, path: /readyz, port: health }
  periodSeconds: 2
{{- end }}

{{- define "unbounded.placement" -}}
{{- with .Values.global.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
