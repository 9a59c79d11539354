package main

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnlocal"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/types/key"
)

// A process that is killed takes the keys of its WireGuard sessions along. Its peers have theirs, and send into nothing until they hear
// of it by the control server, or for 15 seconds. So the peers of open sessions are noted, and the next process opens new ones.

const (
	// No key of WireGuard is used for longer (REJECT_AFTER_TIME).
	sessionLife = 180 * time.Second
	// The last ones; each is a handshake at the start.
	mostPeers = 64
)

func peersFile(dir string) string { return filepath.Join(dir, "peers") }

// readPeers returns none where there is no list, or none that is one.
func readPeers(dir string) []netip.Addr {
	text, err := os.ReadFile(peersFile(dir))
	if err != nil {
		return nil
	}
	var addresses []netip.Addr
	for _, word := range strings.Fields(string(text)) {
		if address, err := netip.ParseAddr(word); err == nil && len(addresses) < mostPeers {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// keepPeers greets those of the process before once the device is Running, and then notes those of open sessions.
func keepPeers(ctx context.Context, s *sessions, dir string) {
	former, noted := readPeers(dir), ""
	isGreeted := false
	mask := ipn.NotifyInitialState | ipn.NotifyWatchEngineUpdates
	s.backend.WatchNotifications(ctx, mask, nil, func(notified *ipn.Notify) bool {
		if notified.State != nil && *notified.State == ipn.Running && !isGreeted {
			isGreeted = true
			for _, address := range former {
				go s.greet(ctx, address)
			}
		}
		if notified.Engine == nil || !isGreeted {
			return true
		}
		if list := peerList(s.backend, notified.Engine.LivePeers, time.Now()); list != noted {
			if writeWhole(peersFile(dir), list) == nil { // else at the next look
				noted = list
			}
		}
		return true
	})
}

// peerList has an address of each peer with an open session, a line each: those of the last handshakes, in the order of addresses.
func peerList(backend *ipnlocal.LocalBackend, live map[key.NodePublic]ipnstate.PeerStatusLite, now time.Time) string {
	var open []ipnstate.PeerStatusLite
	for _, peer := range live {
		if now.Sub(peer.LastHandshake) < sessionLife {
			open = append(open, peer)
		}
	}
	slices.SortFunc(open, func(a, b ipnstate.PeerStatusLite) int { return b.LastHandshake.Compare(a.LastHandshake) })
	var lines []string
	for _, peer := range open[:min(len(open), mostPeers)] {
		if node, _, ok := backend.WhoIsNodeKey(peer.NodeKey); ok && node.Addresses().Len() > 0 {
			lines = append(lines, node.Addresses().At(0).Addr().String()+"\n")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
