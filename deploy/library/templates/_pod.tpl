{{/* What pods of all programs have in common. Each is called with the scope of a program's own chart. */}}

{{/*
The values of all programs, as YAML. What is not given has its default here as well as in the values of the umbrella chart: an installation
of before, whose values --reuse-values keeps, may lack some, and a program's chart alone, as helm lint looks at it, has none.
*/}}
{{- define "unbounded.global" -}}
{{- $defaults := dict
  "image" (dict "repository" "unbounded.local/unbounded" "pullPolicy" "IfNotPresent")
  "apiServer" (dict "port" 6443)
  "host" (dict "keys" "/etc/wireguard" "state" "/var/lib/unbounded")
  "tailnet" dict
-}}
{{- range $name, $given := .Values.global }}
{{- if $given }}{{- $_ := set $defaults $name (merge (deepCopy $given) (get $defaults $name | default dict)) }}{{- end }}
{{- end }}
{{- toYaml $defaults }}
{{- end }}

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
  app.kubernetes.io/version: {{ (include "unbounded.global" . | fromYaml).image.tag | default .Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "unbounded.podMetadata" -}}
labels:
  {{- include "unbounded.labels" . | nindent 2 }}
{{- with .Values.podLabels }}
  {{- range $name := list "app.kubernetes.io/name" "app.kubernetes.io/instance" }}
  {{- if hasKey $.Values.podLabels $name }}
  {{- fail (printf "%s.podLabels: %s: must be another label: by this one the chart selects the pods" ($.ValuesOf | default $.Chart.Name) $name) }}
  {{- end }}
  {{- end }}
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
An image by name, and by tag or digest: those of the program where it has its own, else those of all programs. Called with
(list scope VALUES), VALUES being the program's registry, repository, tag and digest. A registry takes the place of the one that the
repository begins with: as for container runtimes, that is a first part with a dot or a port, or localhost.
*/}}
{{- define "unbounded.reference" -}}
{{- $scope := index . 0 -}}
{{- $own := index . 1 | default dict -}}
{{- $all := (include "unbounded.global" $scope | fromYaml).image -}}
{{- $version := ternary $own $all (or (not (empty $own.tag)) (not (empty $own.digest))) -}}
{{- $tag := $version.tag | default (ternary "" $scope.Chart.AppVersion (not (empty $version.digest))) -}}
{{- $repository := $own.repository | default $all.repository -}}
{{- with $own.registry | default $all.registry -}}
{{- $repository = printf "%s/%s" . (regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $repository "") -}}
{{- end -}}
{{- $repository }}{{ with $tag }}:{{ . }}{{ end }}{{ with $version.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "unbounded.image" -}}
image: {{ include "unbounded.reference" (list . .Values.image) | quote }}
imagePullPolicy: {{ (include "unbounded.global" . | fromYaml).image.pullPolicy }}
{{- end }}

{{- define "unbounded.bundle" -}}
/unbounded/apps/{{ .Chart.Name }}/dist/main.mjs
{{- end }}

{{/* Metrics on the node's own address; needs HOST_IP in the environment. */}}
{{- define "unbounded.healthAddress" -}}
- --health-address={{ .Values.healthAddress | default "$(HOST_IP)" }}
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
{{- with (include "unbounded.global" . | fromYaml).image.pullSecrets }}
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
