// Injected faults and their end, and what is refused.

package main

import (
	"net/http"
	"testing"
	"time"
)

func TestFaultsEndByThemselves(t *testing.T) {
	f := newFixture(t)
	f.login()
	f.call("POST", "/debug/fail", `{"path":"`+devicesPath+`","count":2,"status":429,"retryAfterSeconds":7}`, http.StatusOK, nil)
	for range 2 {
		if after := f.call("GET", devicesPath, "", http.StatusTooManyRequests, nil).Get("Retry-After"); after != "7" {
			t.Fatalf("Retry-After %q, want 7", after)
		}
	}
	f.call("GET", devicesPath, "", http.StatusOK, nil)
	var stats struct{ Requests map[string]int }
	f.call("GET", "/debug/stats", "", http.StatusOK, &stats)
	if stats.Requests["GET "+devicesPath] != 3 || stats.Requests["POST /api/v2/oauth/token"] != 1 {
		t.Fatalf("requests %v", stats.Requests)
	}
}

func TestFaultsUntilReset(t *testing.T) {
	f := newFixture(t)
	f.login()
	f.call("POST", "/debug/fail", `{"path":"/api/v2/*","count":-1,"status":503}`, http.StatusOK, nil)
	for range 5 {
		f.call("GET", devicesPath, "", http.StatusServiceUnavailable, nil)
	}
	f.call("GET", "/key", "", http.StatusOK, nil)
	f.call("POST", "/debug/fail", `{"path":"/api/v2/*","count":0}`, http.StatusOK, nil)
	f.call("GET", devicesPath, "", http.StatusOK, nil)
}

func TestDelayAlone(t *testing.T) {
	f := newFixture(t)
	f.call("POST", "/debug/fail", `{"path":"/key","count":1,"delayMs":50}`, http.StatusOK, nil)
	start := time.Now()
	f.call("GET", "/key", "", http.StatusOK, nil)
	if passed := time.Since(start); passed < 50*time.Millisecond {
		t.Fatalf("answered after %v, want 50 ms at least", passed)
	}
}

func TestFaultErrorsNameTheField(t *testing.T) {
	f := newFixture(t)
	for body, want := range map[string]string{
		`{"path":"key","count":1,"status":503}`:            `path "key" must begin with "/", and not with "/debug/"`,
		`{"path":"/debug/fail","count":1,"status":503}`:    `path "/debug/fail" must begin with "/", and not with "/debug/"`,
		`{"path":"/key","count":-2,"status":503}`:          `count -2 must be a number of requests, -1 for all, or 0 to end the fault`,
		`{"path":"/key","count":1,"status":200}`:           `status 200 must be 400 to 599`,
		`{"path":"/key","count":1}`:                        `status 0 must be 400 to 599 when there is no delayMs`,
		`{"path":"/key","count":1,"delayMs":60001}`:        `delayMs 60001 must be 0 to 60000`,
		`{"path":"/key","count":1,"status":503,"times":1}`: `body: json: unknown field "times"`,
	} {
		var answer struct{ Message string }
		f.call("POST", "/debug/fail", body, http.StatusBadRequest, &answer)
		if answer.Message != want {
			t.Errorf("%s: message %q, want %q", body, answer.Message, want)
		}
	}
}
