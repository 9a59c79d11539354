// Registration of clients: log-in by auth key, restart with the same node key, log-out, log-in again.

package main

import (
	"encoding/json"
	"log"
	"net/http"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// All nodes are tagged, and so belong to this one user, as in Tailscale's service.
const (
	taggedUser   = tailcfg.UserID(1)
	taggedName   = "tagged-devices"
	requestBytes = 1 << 20
)

// serveRegister answers POST /machine/register of a client whose machine key the Noise handshake has proved.
func (s *server) serveRegister(w http.ResponseWriter, r *http.Request, machine key.MachinePublic) {
	var request tailcfg.RegisterRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, requestBytes)).Decode(&request); err != nil {
		http.Error(w, "register request: "+err.Error(), http.StatusBadRequest)
		return
	}
	response := s.tailnet.register(&request, machine)
	log.Printf("register: node key %s, host name %q, error %q, key expired %t",
		request.NodeKey.ShortString(), hostnameOf(request.Hostinfo), response.Error, response.NodeKeyExpired)
	writeJSON(w, http.StatusOK, response)
}

// register is the whole life of a node key: log-in, restart, log-out.
func (t *tailnet) register(request *tailcfg.RegisterRequest, machine key.MachinePublic) tailcfg.RegisterResponse {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	current := t.nodeByKeyLocked(request.NodeKey)
	switch {
	case current != nil && current.Machine != machine:
		return t.refuseLocked("node key belongs to another machine")
	case !request.Expiry.IsZero() && request.Expiry.Before(t.now()):
		return t.logoutLocked(current, request)
	case current != nil && t.expiredLocked(current):
		return tailcfg.RegisterResponse{NodeKeyExpired: true} // the client comes again with a new node key
	case current != nil:
		t.counts.Restarts++ // a restart with the same identity needs no auth key
		return accepted()
	case request.Auth == nil || request.Auth.AuthKey == "":
		return t.refuseLocked("an auth key is needed")
	}
	return t.loginLocked(request, machine)
}

func accepted() tailcfg.RegisterResponse {
	return tailcfg.RegisterResponse{
		User:              tailcfg.User{ID: taggedUser, DisplayName: taggedName},
		Login:             tailcfg.Login{ID: tailcfg.LoginID(taggedUser), Provider: "tailnet-control", LoginName: taggedName},
		MachineAuthorized: true,
	}
}

func (t *tailnet) refuseLocked(reason string) tailcfg.RegisterResponse {
	t.counts.RefusedLogins++
	return tailcfg.RegisterResponse{Error: reason}
}

// logoutLocked: a client logs out by a request whose expiry is in the past. An ephemeral node is gone with that; another
// one stays as an expired device until it is deleted. Who logs out after that has no node, and nothing is left to do.
func (t *tailnet) logoutLocked(n *node, request *tailcfg.RegisterRequest) tailcfg.RegisterResponse {
	t.counts.Logouts++
	switch {
	case n == nil:
	case n.ephemeral:
		delete(t.nodes, n.ID)
	default:
		n.KeyExpiry = request.Expiry
	}
	t.notifyLocked()
	return tailcfg.RegisterResponse{NodeKeyExpired: true}
}

// loginLocked uses the auth key only when nothing else can fail: a single-use key is not lost by a refusal.
func (t *tailnet) loginLocked(request *tailcfg.RegisterRequest, machine key.MachinePublic) tailcfg.RegisterResponse {
	k, err := t.checkAuthKeyLocked(request.Auth.AuthKey)
	if err != nil {
		return t.refuseLocked(err.Error())
	}
	n := t.formerNodeLocked(request, machine)
	if n == nil {
		if n, err = t.addNodeLocked(); err != nil {
			return t.refuseLocked(err.Error())
		}
	}
	k.uses++
	t.counts.Logins++
	n.Machine, n.Key, n.User, n.Cap = machine, request.NodeKey, taggedUser, request.Version
	n.KeyExpiry, n.lastSeen, n.MachineAuthorized = time.Time{}, t.now(), true
	n.Tags, n.ephemeral = k.tags, k.ephemeral || request.Ephemeral
	if request.Hostinfo != nil {
		n.Hostinfo = request.Hostinfo.View()
	}
	t.renameLocked(n, hostnameOf(request.Hostinfo))
	t.notifyLocked()
	return accepted()
}

// formerNodeLocked is the node that a machine logs in to again, and whose addresses it keeps: the one whose key it replaces,
// or one that it was logged out of or that has expired.
func (t *tailnet) formerNodeLocked(request *tailcfg.RegisterRequest, machine key.MachinePublic) *node {
	if old := t.nodeByKeyLocked(request.OldNodeKey); old != nil && old.Machine == machine {
		return old
	}
	var found *node
	for _, n := range t.nodes {
		if n.Machine == machine && t.expiredLocked(n) && (found == nil || n.ID > found.ID) {
			found = n
		}
	}
	return found
}

func hostnameOf(info *tailcfg.Hostinfo) string {
	if info == nil {
		return ""
	}
	return info.Hostname
}
