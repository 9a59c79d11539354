{{/* Of every object; called with the chart's scope and the labels of its values. */}}
{{- define "monitoring.labels" -}}
{{- $scope := index . 0 -}}
app.kubernetes.io/name: {{ $scope.Chart.Name }}
app.kubernetes.io/instance: {{ $scope.Release.Name }}
app.kubernetes.io/part-of: unbounded
app.kubernetes.io/version: {{ $scope.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $scope.Release.Service }}
{{- with index . 1 }}
{{ toYaml . }}
{{- end }}
{{- end }}
