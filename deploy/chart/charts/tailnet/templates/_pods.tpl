{{/* The scope of the second program of this chart, by which the shared templates name it. */}}
{{- define "tailnet.devicesScope" -}}
{{- dict "Chart" (dict "Name" "tailnet-devices" "AppVersion" .Chart.AppVersion) "Release" (dict "Name" .Release.Name "Namespace" .Release.Namespace "Service" .Release.Service) "Values" .Values "ValuesOf" .Chart.Name | toJson }}
{{- end }}

{{/* What both pods have. Neither is root: 65532 owns the folders, and the group 0 is that of the node's agent, which asks by the socket. */}}
{{- define "tailnet.pod" -}}
enableServiceLinks: false
hostNetwork: true
dnsPolicy: Default
{{ include "unbounded.placement" . }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  seccompProfile: { type: RuntimeDefault }
  {{- with .Values.seLinuxOptions }}
  seLinuxOptions:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/*
Gives folders to the user of the containers, and their group a device. Called with (list scope MOUNT...), a MOUNT being (list VOLUME PATH WHAT), and WHAT
the mode of a folder, or "device". They are mounts, so that no path below or beside them is touched. root without the right to override modes may change that of
its own files only: hence the order.
*/}}
{{- define "tailnet.prepare" -}}
{{- $mounts := rest . -}}
- name: prepare
  {{- include "unbounded.image" (first .) | nindent 2 }}
  args:
    - -e
    - |
      const fs = require('node:fs');
      const [user, group] = [65532, 0];
      const giveFolder = (path, mode) => {
        const found = fs.lstatSync(path); // a link is not followed
        if (!found.isDirectory()) throw new Error(`${path} is no folder: remove it on the node`);
        if (found.uid === user && found.gid === group && (found.mode & 0o7777) === mode) return;
        fs.lchownSync(path, 0, 0);
        fs.chmodSync(path, mode);
        fs.lchownSync(path, user, group);
      };
      // Where no udev has made it one for everybody, it is root's alone, without its group.
      const openDevice = (path) => {
        const found = fs.lstatSync(path);
        if (!found.isCharacterDevice()) throw new Error(`${path} is no device: modprobe tun on the node`);
        if ((found.mode & 0o006) !== 0o006) fs.chmodSync(path, (found.mode & 0o7777) | 0o060);
      };
      for (const argument of process.argv.slice(1)) {
        const [path, what] = argument.split('=');
        if (what === 'device') openDevice(path);
        else giveFolder(path, parseInt(what, 8));
      }
    {{- range $mounts }}
    - {{ index . 1 }}={{ index . 2 }}
    {{- end }}
  securityContext:
    runAsUser: 0
    runAsGroup: 0
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: { drop: [ALL], add: [CHOWN] }
  volumeMounts:
    {{- range $mounts }}
    - { name: {{ index . 0 }}, mountPath: {{ index . 1 }} }
    {{- end }}
{{- end }}
