import type { EventRecorder } from '@unbounded/kube';
import type { RecordsPlan } from '@unbounded/tailnet';

/** Tells once for each pod and text why it is no device. */
export const createRefusals = (recorder: EventRecorder) => {
  let told = new Set<string>();
  return {
    tell(refusals: RecordsPlan['refusals']): void {
      const current = new Set<string>();
      for (const { pod, message } of refusals) {
        const { namespace, name, uid } = pod;
        const key = `${uid} ${message}`;
        current.add(key);
        if (told.has(key)) continue;
        recorder.record({
          about: { apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name, uid } },
          ...{ type: 'Warning', reason: 'TailnetRefused', action: 'Register', note: message },
        });
      }
      told = current;
    },
  };
};
