//go:build programs

// Package programs names upstream's own daemon, so that go.mod pins it: what users run beside a pod, next to which tools/bench tailnet
// measures tailnet-device. Nothing else uses it.
package programs

import _ "tailscale.com/cmd/tailscaled"
