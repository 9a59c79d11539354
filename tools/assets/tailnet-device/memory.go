package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A node has many devices: what its start and traffic have left is given back to the kernel once they have ended. There is no limit near to what a device
// has: Go counts addresses, not pages, and the buffers of packets, of 64 KiB each, are hardly touched. With a limit below their sum (50 to
// 180 MiB) it collects garbage without end.
const (
	limitBytes = 512 << 20
	lookEvery  = time.Second
	// Allocated in a look at rest, and since memory was last given back.
	restBytes, worthBytes = 1 << 20, 2 << 20
)

func giveBack(ctx context.Context) {
	debug.SetMemoryLimit(limitBytes)
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	var last, given uint64
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		metrics.Read(sample)
		now := sample[0].Value.Uint64()
		if now-last < restBytes && now-given > worthBytes {
			runtime.GC() // what pools hold outlives one collection
			debug.FreeOSMemory()
			unmapProgram() // last: a collection reads much of it
			given = now
		}
		last = now
	}
}
