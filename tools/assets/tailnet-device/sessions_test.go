package main

import (
	"slices"
	"testing"
	"time"
)

// settled tells what is done until the ping of this number, from 1 on, is answered.
func settled(isOpen bool, answered int) (did []string) {
	pings := 0
	untilAnswered(isOpen, func() { did = append(did, "reset") }, func(patience time.Duration) bool {
		pings++
		did = append(did, patience.String())
		return pings == answered
	})
	return did
}

func TestASessionIsAskedForAnAnswerEvenWhereItIsOpen(t *testing.T) {
	for _, each := range []struct {
		isOpen   bool
		answered int
		want     []string
	}{
		{true, 1, []string{"1s"}},
		{true, 2, []string{"1s", "2s"}}, // the first ping has begun the session anew
		{true, 0, []string{"1s", "2s"}},
		{false, 1, []string{"reset", "500ms"}},
		{false, 0, []string{"reset", "500ms", "1s", "2s"}},
	} {
		if got := settled(each.isOpen, each.answered); !slices.Equal(got, each.want) {
			t.Errorf("open %v, answer to ping %d: %v, want %v", each.isOpen, each.answered, got, each.want)
		}
	}
}

func TestASideThatHearsNothingActsBeforeWireGuardWould(t *testing.T) {
	const handshakeAgain = 5 * time.Second
	if open := secondLook + handshakePatience[1]; open >= handshakeAgain-time.Second {
		t.Errorf("an open session is begun anew after %v", open)
	}
}
