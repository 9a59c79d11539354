//go:build programs

// Package programs names Kubernetes' metrics-server, so that go.mod pins it: it tells horizontal autoscalers what pods use, in
// tools/test matrix. Nothing else uses it.
package programs

import _ "sigs.k8s.io/metrics-server/cmd/metrics-server"
