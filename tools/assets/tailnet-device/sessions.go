package main

import (
	"context"
	"net/netip"
	"time"

	"tailscale.com/ipn/ipnlocal"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/wgengine"
)

// What a peer has of a new session goes once more when it hears from the control server, after that, of a device that has started
// again. So it is looked at for some seconds: this long after each answer.
var greetPauses = [...]time.Duration{
	0, 300 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond, 600 * time.Millisecond,
	600 * time.Millisecond, 1200 * time.Millisecond, 2400 * time.Millisecond, 4800 * time.Millisecond,
}

// A handshake over a far relay takes longer: each time that no answer comes the next one has twice as long.
const firstPatience = 300 * time.Millisecond

// sessions are those of WireGuard with peers. Where one side has a session that the other does not have, or both wait for each other,
// WireGuard tries again after 5 to 15 seconds. Here a ping finds that out, and ours is begun anew.
type sessions struct {
	backend *ipnlocal.LocalBackend
	engine  wgengine.Engine
}

// greet opens a session with a peer that the process before had one with, and keeps it until all of the tailnet knows of this process.
func (s *sessions) greet(ctx context.Context, address netip.Addr) {
	patience, isAnswered := firstPatience, false
	if peer, isPeer := s.peerOf(address); isPeer && s.yieldsTo(peer) {
		patience += firstPatience / 2 // where both have started again
	}
	for _, pause := range greetPauses {
		if isAnswered && !rest(ctx, pause) {
			return
		}
		latency, ok := s.ping(ctx, address, patience)
		if isAnswered = ok; isAnswered {
			patience = max(firstPatience, 3*latency)
		} else {
			patience *= 2
		}
	}
}

// settle opens a session with somebody whom the pod has just begun to send to, if a moment later there is none by which both hear each other.
func (s *sessions) settle(ctx context.Context, address netip.Addr) {
	peer, isPeer := s.peerOf(address)
	if !isPeer {
		return
	}
	look := firstLook
	if s.yieldsTo(peer) {
		look = secondLook
	}
	if !rest(ctx, look) {
		return
	}
	reset := func() { s.engine.ResetDevicePeer(peer) }
	untilAnswered(s.isOpen(peer), reset, func(patience time.Duration) bool {
		_, ok := s.ping(ctx, address, patience)
		return ok
	})
}

// untilAnswered pings until there is an answer, or all patience is spent. A session that is open is asked as well: while a handshake's
// initiation and a response from the same peer are read at once, wireguard-go (ConsumeMessageResponse) can open one under an index that it
// does not have, so that this side sends and hears nothing, the other one hears and is not heard, and both have it open.
func untilAnswered(isOpen bool, reset func(), ping func(patience time.Duration) bool) {
	patiences := handshakePatience
	if isOpen {
		patiences = patiences[1:] // one that answers slowly is not reset
	} else {
		reset()
	}
	for _, patience := range patiences {
		if ping(patience) {
			return
		}
	}
}

// peerOf is whoever has an address in the tailnet.
func (s *sessions) peerOf(address netip.Addr) (key.NodePublic, bool) {
	node, _, isPeer := s.backend.WhoIs("", netip.AddrPortFrom(address, 0))
	if !isPeer {
		return key.NodePublic{}, false
	}
	return node.Key(), true
}

// yieldsTo tells which of two sides leaves the next handshake to the other one.
func (s *sessions) yieldsTo(peer key.NodePublic) bool {
	return s.backend.NodeKey().Compare(peer) > 0
}

func (s *sessions) isOpen(peer key.NodePublic) bool {
	session, ok := s.engine.PeerByKey(peer)
	return ok && time.Since(session.LastHandshake()) < sessionLife
}

// ping is one between devices (TSMP): no program of the peer sees it, no ACL is asked, and with it goes the key for finding paths. When
// nothing at all comes from the peer meanwhile its session is begun anew with the next packet.
func (s *sessions) ping(ctx context.Context, address netip.Addr, patience time.Duration) (time.Duration, bool) {
	peer, isPeer := s.peerOf(address)
	if !isPeer {
		return 0, false
	}
	before := s.received(peer)
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	result, err := s.backend.Ping(ctx, address, tailcfg.PingTSMP, 0)
	if err == nil && result.Err == "" {
		return time.Duration(result.LatencySeconds * float64(time.Second)), true
	}
	if s.received(peer) == before {
		s.engine.ResetDevicePeer(peer)
	}
	return 0, false
}

// received is how many bytes came in by the session, or zero without one.
func (s *sessions) received(peer key.NodePublic) uint64 {
	if session, ok := s.engine.PeerByKey(peer); ok {
		return session.RxBytes()
	}
	return 0
}

// rest reports false when ctx has ended.
func rest(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}
