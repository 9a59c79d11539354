// The REST API of devices: list, get, delete and expire.

package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

func (s *server) serveDevices(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"devices": s.tailnet.devices()})
}

func (t *tailnet) devices() []map[string]any {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	devices := []map[string]any{}
	for _, n := range t.sortedNodesLocked() {
		devices = append(devices, t.deviceLocked(n))
	}
	return devices
}

func (s *server) serveDevice(w http.ResponseWriter, r *http.Request) {
	var device map[string]any
	if s.withDevice(w, r, func(n *node) { device = s.tailnet.deviceLocked(n) }) {
		writeJSON(w, http.StatusOK, device)
	}
}

// serveDeleteDevice ends the node's streams, too: there is no map for it any more.
func (s *server) serveDeleteDevice(w http.ResponseWriter, r *http.Request) {
	s.withDevice(w, r, func(n *node) {
		delete(s.tailnet.nodes, n.ID)
		s.tailnet.counts.Deletions++
		s.tailnet.notifyLocked()
	})
}

// serveExpireDevice sets the expiry a minute back, for a client whose clock is somewhat behind.
func (s *server) serveExpireDevice(w http.ResponseWriter, r *http.Request) {
	s.withDevice(w, r, func(n *node) {
		n.KeyExpiry = s.tailnet.now().Add(-time.Minute)
		s.tailnet.notifyLocked()
	})
}

// withDevice holds the mutex while it calls what is to be done with the device that the path names, and not while it writes
// to a client, which may be slow. It reports false after it has answered that there is no such device.
func (s *server) withDevice(w http.ResponseWriter, r *http.Request, do func(*node)) bool {
	id := r.PathValue("id")
	s.tailnet.mutex.Lock()
	n := s.tailnet.nodeByIDLocked(id)
	if n != nil {
		do(n)
	}
	s.tailnet.mutex.Unlock()
	if n == nil {
		writeError(w, http.StatusNotFound, fmt.Sprintf("device %q does not exist", id))
	}
	return n != nil
}

// deviceLocked is a node in the documented form of the REST API.
func (t *tailnet) deviceLocked(n *node) map[string]any {
	device := map[string]any{
		"id": fmt.Sprint(int64(n.ID)), "nodeId": n.StableID, "name": nameOf(n), "hostname": "", "addresses": plainAddresses(n),
		"tags": n.Tags, "isEphemeral": n.ephemeral, "authorized": true, "connectedToControl": n.streams > 0,
		"created": timestamp(n.Created), "lastSeen": timestamp(n.lastSeen), "expires": timestamp(n.KeyExpiry),
		"keyExpiryDisabled": n.KeyExpiry.IsZero(), "nodeKey": n.Key.String(), "machineKey": n.Machine.String(),
	}
	if n.Hostinfo.Valid() {
		device["hostname"] = n.Hostinfo.Hostname()
	}
	return device
}

func nameOf(n *node) string { return strings.TrimSuffix(n.Name, ".") }

func plainAddresses(n *node) []string {
	var addresses []string
	for _, address := range n.Addresses {
		addresses = append(addresses, address.Addr().String())
	}
	return addresses
}

func timestamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
