// Network maps: peers, and what a hostile server puts in.

package main

import (
	"net/http"
	"testing"

	"tailscale.com/tailcfg"
)

func TestHostileMapIsSetAndReset(t *testing.T) {
	f := newFixture(t)
	f.login()
	c := newClient()
	f.mustRegister(c, f.createKey(onlyTag).Key)
	changed := make(chan struct{}, 1)
	f.tailnet.subscribe(c.node, changed)
	f.call("POST", "/debug/map", `{"routes":["10.0.0.0/8"],"oneCgnat":true,"peerAddress":"10.1.2.3/32","cacheNetworkMaps":true}`, http.StatusOK, nil)
	<-changed
	response := f.tailnet.mapFor(c.node)
	if len(response.Peers) != 2 || len(response.Node.CapMap) != 2 {
		t.Fatalf("peers %v, capabilities %v", response.Peers, response.Node.CapMap)
	}
	router, outsider := response.Peers[0], response.Peers[1]
	if len(router.AllowedIPs) != 3 || router.PrimaryRoutes[0].String() != "10.0.0.0/8" || outsider.Addresses[0].String() != "10.1.2.3/32" {
		t.Fatalf("router %v %v, outsider %v", router.AllowedIPs, router.PrimaryRoutes, outsider.Addresses)
	}
	sent := removeGone(response, nil)
	f.call("POST", "/debug/map", `{}`, http.StatusOK, nil)
	<-changed
	response = f.tailnet.mapFor(c.node)
	removeGone(response, sent)
	if len(response.Peers) != 0 || len(response.Node.CapMap) != 0 || len(response.PeersRemoved) != 2 {
		t.Fatalf("peers %v, capabilities %v, removed %v", response.Peers, response.Node.CapMap, response.PeersRemoved)
	}
	f.call("POST", "/debug/map", `{"routes":["10.0.0.0"]}`, http.StatusBadRequest, nil)
}

func TestMapShowsWhoIsOnlineAndLeavesOutTheExpired(t *testing.T) {
	f := newFixture(t)
	f.login()
	self, peer := newClient(), newClient()
	f.mustRegister(self, f.createKey(onlyTag).Key)
	f.mustRegister(peer, f.createKey(onlyTag).Key)
	shown := func() []*tailcfg.Node { return f.tailnet.mapFor(self.node).Peers }
	if *shown()[0].Online {
		t.Fatal("a peer without a stream is online")
	}
	f.tailnet.subscribe(peer.node, make(chan struct{}, 1))
	if !*shown()[0].Online {
		t.Fatal("a peer with a stream is offline")
	}
	f.logout(peer)
	if len(shown()) != 0 {
		t.Fatalf("peers %v, want none", shown())
	}
}

func TestMapRequestOfAnotherMachineIsRefused(t *testing.T) {
	f := newFixture(t)
	f.login()
	c := newClient()
	f.mustRegister(c, f.createKey(onlyTag).Key)
	if request := (&tailcfg.MapRequest{NodeKey: c.node}); f.tailnet.update(request, newClient().machine) || !f.tailnet.update(request, c.machine) {
		t.Fatal("whose request is taken")
	}
}
