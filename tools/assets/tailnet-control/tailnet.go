// The state of the tailnet: its nodes, their addresses and names, and who is told of changes.

package main

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"tailscale.com/net/tsaddr"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/util/dnsname"
)

// node is a device of the tailnet: what its peers are told of it, and what only we know.
type node struct {
	tailcfg.Node
	ephemeral bool
	lastSeen  time.Time
	streams   int // open map streams: the node is online while there is one
}

// tailnet is everything that the server knows, in memory. Methods whose name ends in Locked expect the mutex to be held.
type tailnet struct {
	suffix       string
	prefix       netip.Prefix
	ephemeralTTL time.Duration
	policy       *policy // nil allows everything
	relays       *tailcfg.DERPMap
	now          func() time.Time // replaced in tests of expiry

	mutex       sync.Mutex
	nodes       map[tailcfg.NodeID]*node
	authKeys    map[string]*authKey // by the secret that a client sends
	subscribers map[chan struct{}]struct{}
	lastID      tailcfg.NodeID
	lastAddress netip.Addr
	hostile     hostileMap
	counts      eventCounts
}

// eventCounts is part of what GET /debug/stats answers.
type eventCounts struct {
	Logins            int `json:"logins"`
	RefusedLogins     int `json:"refusedLogins"`
	Restarts          int `json:"restarts"`
	Logouts           int `json:"logouts"`
	Deletions         int `json:"deletions"`
	EphemeralRemovals int `json:"ephemeralRemovals"`
}

func newTailnet(prefix netip.Prefix, suffix string, ephemeralTTL time.Duration) *tailnet {
	return &tailnet{
		suffix: suffix, prefix: prefix, ephemeralTTL: ephemeralTTL, now: time.Now,
		nodes: map[tailcfg.NodeID]*node{}, authKeys: map[string]*authKey{}, subscribers: map[chan struct{}]struct{}{},
		lastAddress: prefix.Masked().Addr(), // the network's own address is not given out
	}
}

// notifyLocked makes every stream send a new map. A stream that was told and has not sent yet need not be told again.
func (t *tailnet) notifyLocked() {
	for subscriber := range t.subscribers {
		select {
		case subscriber <- struct{}{}:
		default:
		}
	}
}

func (t *tailnet) nodeByKeyLocked(nodeKey key.NodePublic) *node {
	for _, n := range t.nodes {
		if n.Key == nodeKey {
			return n
		}
	}
	return nil
}

// nodeByIDLocked finds a node by either of the two IDs that the REST API accepts.
func (t *tailnet) nodeByIDLocked(id string) *node {
	for _, n := range t.nodes {
		if string(n.StableID) == id || fmt.Sprint(int64(n.ID)) == id {
			return n
		}
	}
	return nil
}

// sortedNodesLocked are all nodes by ID: the order in which they came.
func (t *tailnet) sortedNodesLocked() []*node {
	return slices.SortedFunc(maps.Values(t.nodes), func(a, b *node) int { return cmp.Compare(a.ID, b.ID) })
}

func (t *tailnet) expiredLocked(n *node) bool {
	return !n.KeyExpiry.IsZero() && !n.KeyExpiry.After(t.now())
}

// addNodeLocked makes a node with an ID and addresses of its own.
func (t *tailnet) addNodeLocked() (*node, error) {
	addresses, err := t.takeAddressesLocked()
	if err != nil {
		return nil, err
	}
	t.lastID++
	n := &node{}
	n.ID, n.StableID = t.lastID, tailcfg.StableNodeID(fmt.Sprintf("n%08xCNTRL", int64(t.lastID)))
	n.Addresses, n.AllowedIPs = addresses, addresses
	n.Created = t.now()
	t.nodes[n.ID] = n
	return n, nil
}

// takeAddressesLocked only ever counts up, so that an address which was deleted is not given to another node: what still
// holds it would be taken for that node. Addresses that Tailscale itself keeps are passed over.
func (t *tailnet) takeAddressesLocked() ([]netip.Prefix, error) {
	for address := t.lastAddress.Next(); t.prefix.Contains(address); address = address.Next() {
		t.lastAddress = address
		if !tsaddr.IsTailscaleIPv4(address) || address == tsaddr.TailscaleServiceIP() {
			continue
		}
		return []netip.Prefix{netip.PrefixFrom(address, 32), netip.PrefixFrom(tsaddr.Tailscale4To6(address), 128)}, nil
	}
	return nil, fmt.Errorf("prefix %s has no free address", t.prefix)
}

// renameLocked names a node by its host name; a further node of that name gets a number, as in Tailscale's service.
func (t *tailnet) renameLocked(n *node, hostname string) {
	base := dnsname.SanitizeHostname(hostname)
	if base == "" {
		base = "node"
	}
	label := base
	for number := 1; t.nameTakenLocked(t.fullName(label), n.ID); number++ {
		label = fmt.Sprintf("%s-%d", base, number)
	}
	n.ComputedName, n.Name = label, t.fullName(label)
}

func (t *tailnet) fullName(label string) string { return label + "." + t.suffix + "." }

func (t *tailnet) nameTakenLocked(name string, except tailcfg.NodeID) bool {
	for _, n := range t.nodes {
		if n.ID != except && n.Name == name {
			return true
		}
	}
	return false
}

// removeStale removes ephemeral nodes that were offline for too long, and auth keys that expired more than an hour ago.
func (t *tailnet) removeStale() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for id, n := range t.nodes {
		if n.ephemeral && n.streams == 0 && t.now().Sub(n.lastSeen) > t.ephemeralTTL {
			delete(t.nodes, id)
			t.counts.EphemeralRemovals++
			t.notifyLocked()
		}
	}
	for secret, k := range t.authKeys {
		if t.now().Sub(k.expires) > time.Hour {
			delete(t.authKeys, secret)
		}
	}
}

// randomHex is a part of IDs and secrets.
func randomHex(bytes int) string {
	random := make([]byte, bytes)
	rand.Read(random) // never fails: the program would end
	return hex.EncodeToString(random)
}
