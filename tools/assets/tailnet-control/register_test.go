// Registration: restart, twins, log-out, expiry, log-in again, ephemeral nodes.

package main

import (
	"net/http"
	"testing"
	"time"

	"tailscale.com/types/key"
)

const onlyTag = `{"tags":["tag:a"]}`

func TestRestartNeedsNoKey(t *testing.T) {
	f := newFixture(t)
	f.login()
	c := newClient()
	f.mustRefuse(c, "", "an auth key is needed")
	f.mustRegister(c, f.createKey(onlyTag).Key)
	f.mustRegister(c, "")
	f.only()
	if counts := f.tailnet.counts; counts.Logins != 1 || counts.Restarts != 1 || counts.RefusedLogins != 1 {
		t.Fatalf("counts %+v", counts)
	}
}

func TestNodeKeyOfAnotherMachineIsRefused(t *testing.T) {
	f := newFixture(t)
	f.login()
	c := newClient()
	f.mustRegister(c, f.createKey(onlyTag).Key)
	twin := &client{machine: key.NewMachine().Public(), node: c.node}
	f.mustRefuse(twin, "", "node key belongs to another machine")
	unused := f.createKey(onlyTag).Key
	f.mustRefuse(twin, unused, "node key belongs to another machine")
	logout := twin.request("")
	logout.Expiry = time.Unix(123, 0)
	if response := f.tailnet.register(logout, twin.machine); response.Error == "" || f.only().Expired {
		t.Fatal("another machine logs the node out")
	}
	f.mustRegister(newClient(), unused) // not used up by what was refused
}

func TestLogoutRemovesEphemeralNodes(t *testing.T) {
	f := newFixture(t)
	f.login()
	c := newClient()
	f.mustRegister(c, f.createKey(`{"ephemeral":true,"tags":["tag:a"]}`).Key)
	f.logout(c)
	if left := f.summaries(); len(left) != 0 {
		t.Fatalf("nodes %+v, want none", left)
	}
	f.mustRefuse(c, "", "an auth key is needed")
	f.logout(c) // again, without a node
}

func TestLoginAfterLogoutKeepsTheAddress(t *testing.T) {
	f := newFixture(t)
	f.login()
	c := newClient()
	f.mustRegister(c, f.createKey(onlyTag).Key)
	before := f.only()
	f.logout(c)
	if !f.only().Expired {
		t.Fatal("a node that logged out is not expired")
	}
	c.node = key.NewNode().Public()
	f.mustRegister(c, f.createKey(onlyTag).Key)
	if after := f.only(); after.Expired || after.ID != before.ID || after.Addresses[0] != before.Addresses[0] {
		t.Fatalf("node %+v, was %+v", after, before)
	}
}

func TestExpiredNodeKeyIsReplaced(t *testing.T) {
	f := newFixture(t)
	f.login()
	c := newClient()
	f.mustRegister(c, f.createKey(onlyTag).Key)
	before := f.only()
	f.call("POST", "/api/v2/device/"+before.ID+"/expire", "", http.StatusOK, nil)
	secret := f.createKey(onlyTag).Key
	if response := f.register(c, secret); !response.NodeKeyExpired || response.Error != "" {
		t.Fatalf("register: error %q, key expired %t, want an expired key", response.Error, response.NodeKeyExpired)
	}
	request := c.request(secret) // still unused
	request.OldNodeKey, request.NodeKey = c.node, key.NewNode().Public()
	if response := f.tailnet.register(request, c.machine); response.Error != "" {
		t.Fatalf("register: error %q", response.Error)
	}
	if after := f.only(); after.Expired || after.ID != before.ID {
		t.Fatalf("node %+v, was %+v", after, before)
	}
}

func TestIdleEphemeralNodesAreRemoved(t *testing.T) {
	f := newFixture(t)
	f.login()
	c := newClient()
	f.mustRegister(c, f.createKey(`{"ephemeral":true,"tags":["tag:a"]}`).Key)
	f.mustRegister(newClient(), f.createKey(onlyTag).Key)
	changed := make(chan struct{}, 1)
	n := f.tailnet.subscribe(c.node, changed)
	f.pass(time.Minute)
	f.tailnet.removeStale()
	if len(f.summaries()) != 2 {
		t.Fatal("a node that is online is removed")
	}
	f.tailnet.unsubscribe(n, changed)
	f.pass(31 * time.Second)
	f.tailnet.removeStale()
	if f.only().Ephemeral || f.tailnet.counts.EphemeralRemovals != 1 {
		t.Fatalf("node %+v, counts %+v", f.only(), f.tailnet.counts)
	}
}
