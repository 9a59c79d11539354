// The network map: what a node tells of itself, and what it is told of itself and its peers.

package main

import (
	"encoding/json"
	"net/http"
	"slices"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

const (
	mapRequestBytes = 4 << 20
	// From this version on a request for a stream only reads: the client tells of itself by requests of their own.
	readOnlyStreamVersion = 68
)

// serveMap answers POST /machine/map: it takes what the node tells of itself, and sends one map or a stream of them.
func (s *server) serveMap(w http.ResponseWriter, r *http.Request, machine key.MachinePublic) {
	var request tailcfg.MapRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mapRequestBytes)).Decode(&request); err != nil {
		http.Error(w, "map request: "+err.Error(), http.StatusBadRequest)
		return
	}
	if !s.tailnet.update(&request, machine) {
		http.Error(w, "node not found", http.StatusNotFound)
		return
	}
	compress := request.Compress == "zstd"
	switch {
	case request.Stream:
		s.tailnet.stream(w, r, request.NodeKey, compress)
	case !request.OmitPeers: // with it, the client only tells, and reads nothing
		if response := s.tailnet.mapFor(request.NodeKey); response != nil {
			sendFrame(w, compress, response)
		}
	}
}

// update reports false for a node that does not exist, or not on this machine.
func (t *tailnet) update(request *tailcfg.MapRequest, machine key.MachinePublic) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	n := t.nodeByKeyLocked(request.NodeKey)
	if n == nil || n.Machine != machine {
		return false
	}
	if request.ReadOnly || (request.Stream && request.Version >= readOnlyStreamVersion) {
		return true
	}
	n.Endpoints, n.DiscoKey, n.Cap = request.Endpoints, request.DiscoKey, request.Version
	if info := request.Hostinfo; info != nil {
		n.Hostinfo = info.View()
		if info.NetInfo != nil && info.NetInfo.PreferredDERP != 0 {
			n.HomeDERP = info.NetInfo.PreferredDERP
		}
		t.renameLocked(n, info.Hostname)
	}
	t.notifyLocked()
	return true
}

// mapFor is the whole map as one node sees it, or nil if there is no such node.
func (t *tailnet) mapFor(nodeKey key.NodePublic) *tailcfg.MapResponse {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	self := t.nodeByKeyLocked(nodeKey)
	if self == nil {
		return nil
	}
	now, own := t.now(), self.Node.Clone()
	own.CapMap = t.hostile.capabilities()
	valid := t.validNodesLocked()
	return &tailcfg.MapResponse{
		Node: own, Peers: t.peersLocked(self, valid), DERPMap: t.relays, Domain: t.suffix, ControlTime: &now,
		// Not the field PacketFilter: an empty list is left out there, and would not block anything.
		PacketFilters:   map[string][]tailcfg.FilterRule{"base": t.policy.filterFor(self, valid)},
		DNSConfig:       &tailcfg.DNSConfig{Proxied: true, Domains: []string{t.suffix}},
		CollectServices: "false",
		UserProfiles:    []tailcfg.UserProfile{{ID: taggedUser, LoginName: taggedName, DisplayName: taggedName}},
	}
}

// validNodesLocked are the nodes whose key has not expired, by ID.
func (t *tailnet) validNodesLocked() []*node {
	return slices.DeleteFunc(t.sortedNodesLocked(), t.expiredLocked)
}

func (t *tailnet) peersLocked(self *node, valid []*node) []*tailcfg.Node {
	var peers []*tailcfg.Node
	for _, n := range valid {
		if n.ID == self.ID {
			continue
		}
		peer := n.Node.Clone()
		online := n.streams > 0
		peer.Online = &online
		if !online {
			lastSeen := n.lastSeen
			peer.LastSeen = &lastSeen
		}
		peers = append(peers, peer)
	}
	return append(peers, t.hostile.peers...) // their IDs are the highest
}
