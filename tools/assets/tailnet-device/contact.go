package main

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/tailscale/wireguard-go/tun"
)

// Two devices that begin to talk at the same moment both begin a handshake, each gives its own up for the other's, and neither has a
// session: WireGuard tries again after five seconds, and may meet once more. Or both have one that carries packets one way only: that is
// noticed after 15 s. So whoever a pod begins to talk to is looked at after a moment.

const (
	// Someone who was not sent to for this long is begun with anew. A session ends after 180 s.
	silence = 120 * time.Second
	// Destinations that are remembered: a pod can send to as many as it likes.
	mostContacts = 256
	// Those that are looked at at a time.
	mostLooks = 16
	// One of the two sees to it at once, by their keys; the other one, if that does not, later.
	firstLook, secondLook = 500 * time.Millisecond, 1200 * time.Millisecond
)

var handshakePatience = []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}

// contacts are those that the pod sends to. One goroutine notes them.
type contacts struct {
	begun func(netip.Addr)
	seen  map[netip.Addr]time.Time
}

// note tells of an IP packet that the pod sent at now.
func (c *contacts) note(packet []byte, now time.Time) {
	to, ok := destination(packet)
	if !ok {
		return
	}
	last, isKnown := c.seen[to]
	if !isKnown && len(c.seen) >= mostContacts {
		c.forget(now)
	}
	c.seen[to] = now
	if !isKnown || now.Sub(last) > silence {
		c.begun(to)
	}
}

// forget makes room: for those that are silent, or else for all.
func (c *contacts) forget(now time.Time) {
	for address, last := range c.seen {
		if now.Sub(last) > silence {
			delete(c.seen, address)
		}
	}
	if len(c.seen) >= mostContacts {
		clear(c.seen)
	}
}

// destination is that of an IP header (RFC 791, 3.1; RFC 8200, 3).
func destination(packet []byte) (netip.Addr, bool) {
	switch {
	case len(packet) >= 20 && packet[0]>>4 == 4:
		return netip.AddrFrom4([4]byte(packet[16:20])), true
	case len(packet) >= 40 && packet[0]>>4 == 6:
		return netip.AddrFrom16([16]byte(packet[24:40])), true
	}
	return netip.Addr{}, false
}

// watchedTUN tells of whom the pod begins to send to, once somebody listens.
type watchedTUN struct {
	tun.Device
	contacts contacts
	listener atomic.Pointer[func(netip.Addr)]
}

func watchTUN(device tun.Device) *watchedTUN {
	t := &watchedTUN{Device: device}
	t.contacts = contacts{seen: map[netip.Addr]time.Time{}, begun: func(to netip.Addr) {
		if tell := t.listener.Load(); tell != nil {
			(*tell)(to)
		}
	}}
	return t
}

func (t *watchedTUN) Read(packets [][]byte, sizes []int, offset int) (int, error) {
	n, err := t.Device.Read(packets, sizes, offset)
	now := time.Now()
	for i := range n {
		t.contacts.note(packets[i][offset:offset+sizes[i]], now)
	}
	return n, err
}

// listen has sessions looked after until ctx ends.
func (t *watchedTUN) listen(ctx context.Context, s *sessions) {
	slots := make(chan struct{}, mostLooks)
	tell := func(to netip.Addr) {
		select {
		case slots <- struct{}{}:
			go func() {
				defer func() { <-slots }()
				s.settle(ctx, to)
			}()
		default: // WireGuard sees to it, if later
		}
	}
	t.listener.Store(&tell)
}
