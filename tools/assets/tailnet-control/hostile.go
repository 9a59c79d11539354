// What a hostile control server tells its clients, set at run time: routes, addresses and attributes.

package main

import (
	"fmt"
	"net/http"
	"net/netip"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// IDs of the peers that do not exist, far from those that are given out.
const (
	fakeRouterID tailcfg.NodeID = 1<<40 + iota
	fakeOutsiderID
)

// hostileMap is what a control server that means harm, or is set up badly, puts into the maps of all nodes.
type hostileMap struct {
	Routes           []netip.Prefix `json:"routes"`
	OneCGNAT         bool           `json:"oneCgnat"`
	PeerAddress      *netip.Prefix  `json:"peerAddress"`
	CacheNetworkMaps bool           `json:"cacheNetworkMaps"`

	peers []*tailcfg.Node
}

// serveHostileMap answers POST /debug/map: the body replaces what was set before, so that {} resets all of it.
func (s *server) serveHostileMap(w http.ResponseWriter, r *http.Request) {
	var wanted hostileMap
	if err := readJSON(w, r, &wanted); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	if err := s.tailnet.setHostileMap(wanted); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, struct{}{})
}

func (t *tailnet) setHostileMap(wanted hostileMap) error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(wanted.Routes) > 0 {
		addresses, err := t.takeAddressesLocked()
		if err != nil {
			return fmt.Errorf("routes: %w", err)
		}
		router := t.fakePeer(fakeRouterID, "fake-router", addresses)
		for _, route := range wanted.Routes {
			router.AllowedIPs = append(router.AllowedIPs, route.Masked())
		}
		router.PrimaryRoutes = router.AllowedIPs[len(addresses):]
		wanted.peers = append(wanted.peers, router)
	}
	if wanted.PeerAddress != nil {
		wanted.peers = append(wanted.peers, t.fakePeer(fakeOutsiderID, "fake-outsider", []netip.Prefix{*wanted.PeerAddress}))
	}
	t.hostile = wanted
	t.notifyLocked()
	return nil
}

// fakePeer has what a client asks of a peer before it configures it: keys and a relay region.
func (t *tailnet) fakePeer(id tailcfg.NodeID, label string, addresses []netip.Prefix) *tailcfg.Node {
	offline, now := false, t.now()
	return &tailcfg.Node{
		ID: id, StableID: tailcfg.StableNodeID(fmt.Sprintf("n%08xCNTRL", int64(id))), Name: t.fullName(label), ComputedName: label,
		Key: key.NewNode().Public(), Machine: key.NewMachine().Public(), DiscoKey: key.NewDisco().Public(),
		Addresses: addresses, AllowedIPs: append([]netip.Prefix(nil), addresses...), User: taggedUser, HomeDERP: relayRegion,
		Hostinfo: (&tailcfg.Hostinfo{Hostname: label}).View(), Created: now, LastSeen: &now, Online: &offline,
		MachineAuthorized: true, Cap: tailcfg.CurrentCapabilityVersion,
	}
}

// capabilities are the node attributes that each node finds in its own entry.
func (h *hostileMap) capabilities() tailcfg.NodeCapMap {
	capabilities := tailcfg.NodeCapMap{}
	if h.OneCGNAT {
		capabilities[tailcfg.NodeAttrOneCGNATEnable] = nil
	}
	if h.CacheNetworkMaps {
		capabilities[tailcfg.NodeAttrCacheNetworkMaps] = nil
	}
	return capabilities
}
