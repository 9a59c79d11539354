/** Parts of the relay's Deployment that gateway-health does not write. */

export const inTemplate = (metadata: object) => ({ spec: { template: { metadata } } });
const inPod = (spec: object) => ({ spec: { template: { spec } } });
const inRelay = (container: object) => inPod({ containers: [{ name: 'relay', ...container }] });

const mounted = (mountPath: string): object =>
  inPod({
    volumes: [{ name: 'theirs', emptyDir: {} }],
    containers: [{ name: 'relay', volumeMounts: [{ name: 'theirs', mountPath }] }],
  });

/** What an operator or a mutating webhook may add to a relay that runs, and what only they may. */
export const additions: readonly (readonly [what: string, added: object, changed: object])[] = [
  [
    'an annotation of its pods, as kubectl rollout restart',
    inTemplate({ annotations: { 'kubectl.kubernetes.io/restartedAt': '2026-01-01T00:00:00Z' } }),
    inTemplate({ annotations: { 'kubectl.kubernetes.io/restartedAt': '2026-01-02T00:00:00Z' } }),
  ],
  ['a label of its pods', inTemplate({ labels: { team: 'a' } }), inTemplate({ labels: { team: 'b' } })],
  ['a selector of nodes', inPod({ nodeSelector: { disk: 'fast' } }), inPod({ nodeSelector: { disk: 'slow' } })],
  ['a priority', inPod({ priorityClassName: 'important' }), inPod({ priorityClassName: 'system-node-critical' })],
  ['another scheduler', inPod({ schedulerName: 'theirs' }), inPod({ schedulerName: 'other' })],
  [
    'a Secret for its image',
    inPod({ imagePullSecrets: [{ name: 'theirs' }] }),
    inPod({ imagePullSecrets: [{ name: 'other' }] }),
  ],
  [
    'an SELinux type',
    inPod({ securityContext: { seLinuxOptions: { type: 'theirs_t' } } }),
    inPod({ securityContext: { seLinuxOptions: { type: 'spc_t' } } }),
  ],
  ['a variable', inRelay({ env: [{ name: 'A', value: '1' }] }), inRelay({ env: [{ name: 'A', value: '2' }] })],
  [
    'a resource',
    inRelay({ resources: { limits: { 'example.com/a': '1' }, requests: { 'example.com/a': '1' } } }),
    inRelay({ resources: { limits: { 'example.com/a': '2' }, requests: { 'example.com/a': '2' } } }),
  ],
  ['a volume, and its place in the container', mounted('/theirs'), mounted('/unbounded')],
  [
    'a container',
    inPod({ containers: [{ name: 'theirs', image: 'theirs:1' }] }),
    inPod({ containers: [{ name: 'theirs', image: 'theirs:2' }] }),
  ],
];
