package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"tailscale.com/types/logger"
)

const (
	linesAtOnce  = 20
	lineEvery    = 2 * time.Second
	linesTracked = 50
)

// limitedLog writes to standard error what is no detail, and of what comes again and again a line every two seconds. The packages mark
// details with [v1], [v2] and [v JSON].
func limitedLog() logger.Logf {
	plain := func(format string, arguments ...any) {
		text := strings.TrimSpace(fmt.Sprintf(format, arguments...))
		if !strings.Contains(text, "[v") {
			fmt.Fprintln(os.Stderr, text)
		}
	}
	return logger.RateLimitedFn(plain, lineEvery, linesAtOnce, linesTracked)
}
