// Fault injection: requests for a path fail or are late. All requests are counted here, too.

package main

import (
	"fmt"
	"log"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	debugPrefix     = "/debug/"
	untilReset      = -1
	maximalDelay    = time.Minute
	maximalCounters = 10_000 // paths hold IDs, and so there is no end to them
	otherRequests   = "other"
)

// fault is what requests for a path get instead of an answer: a delay, then a status. Without a status it is served after
// the delay. A path that ends in "*" stands for all that begin so.
type fault struct {
	Path              string `json:"path"`
	Count             int    `json:"count"`
	Status            int    `json:"status"`
	RetryAfterSeconds int    `json:"retryAfterSeconds"`
	DelayMs           int    `json:"delayMs"`
}

// faults injects what POST /debug/fail asks for, and counts the requests.
type faults struct {
	mutex    sync.Mutex
	byPath   map[string]*fault
	requests map[string]int
}

func newFaults() *faults {
	return &faults{byPath: map[string]*fault{}, requests: map[string]int{}}
}

func (f *fault) check() error {
	switch {
	case !strings.HasPrefix(f.Path, "/") || strings.HasPrefix(f.Path, debugPrefix):
		return fmt.Errorf("path %q must begin with \"/\", and not with %q", f.Path, debugPrefix)
	case f.Count < untilReset:
		return fmt.Errorf("count %d must be a number of requests, -1 for all, or 0 to end the fault", f.Count)
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("status %d must be 400 to 599", f.Status)
	case f.RetryAfterSeconds < 0:
		return fmt.Errorf("retryAfterSeconds %d must not be negative", f.RetryAfterSeconds)
	case f.DelayMs < 0 || time.Duration(f.DelayMs)*time.Millisecond > maximalDelay:
		return fmt.Errorf("delayMs %d must be 0 to %d", f.DelayMs, maximalDelay.Milliseconds())
	case f.Count != 0 && f.Status == 0 && f.DelayMs == 0:
		return fmt.Errorf("status %d must be 400 to 599 when there is no delayMs", f.Status)
	}
	return nil
}

// serveSet answers POST /debug/fail.
func (f *faults) serveSet(w http.ResponseWriter, r *http.Request) {
	var wanted fault
	err := readJSON(w, r, &wanted)
	if err == nil {
		err = wanted.check()
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if wanted.Count == 0 {
		delete(f.byPath, wanted.Path)
	} else {
		f.byPath[wanted.Path] = &wanted
	}
	writeJSON(w, http.StatusOK, struct{}{})
}

// around is used outside the Noise connection and inside of it.
func (f *faults) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, debugPrefix) {
			next.ServeHTTP(w, r)
			return
		}
		injected := f.take(r)
		if injected.Path != "" {
			log.Printf("fault: %s %s, status %d, delay %d ms", r.Method, r.URL.Path, injected.Status, injected.DelayMs)
		}
		select {
		case <-time.After(time.Duration(injected.DelayMs) * time.Millisecond):
		case <-r.Context().Done():
			return
		}
		if injected.Status == 0 {
			next.ServeHTTP(w, r)
			return
		}
		if injected.RetryAfterSeconds > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(injected.RetryAfterSeconds))
		}
		writeError(w, injected.Status, "injected fault")
	})
}

// take counts the request and uses up one of the fault's requests. Without a fault the result changes nothing.
func (f *faults) take(r *http.Request) fault {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	counter := r.Method + " " + r.URL.Path
	if _, known := f.requests[counter]; !known && len(f.requests) >= maximalCounters {
		counter = otherRequests
	}
	f.requests[counter]++
	for path, injected := range f.byPath {
		beginning, isBeginning := strings.CutSuffix(path, "*")
		if r.URL.Path != path && !(isBeginning && strings.HasPrefix(r.URL.Path, beginning)) {
			continue
		}
		if injected.Count != untilReset {
			if injected.Count--; injected.Count == 0 {
				delete(f.byPath, path)
			}
		}
		return *injected
	}
	return fault{}
}
