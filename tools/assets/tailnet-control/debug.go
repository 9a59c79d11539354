// What tests ask the server: counts, and the nodes as they are now.

package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// serveStats answers GET /debug/stats.
func (s *server) serveStats(w http.ResponseWriter, _ *http.Request) {
	s.faults.mutex.Lock()
	requests := maps.Clone(s.faults.requests)
	s.faults.mutex.Unlock()
	s.tailnet.mutex.Lock()
	counts := s.tailnet.counts
	s.tailnet.mutex.Unlock()
	writeJSON(w, http.StatusOK, struct {
		Requests map[string]int `json:"requests"`
		eventCounts
	}{requests, counts})
}

// nodeSummary is a node in GET /debug/nodes, which tests can ask for without a token.
type nodeSummary struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Addresses []string   `json:"addresses"`
	Tags      []string   `json:"tags"`
	KeyExpiry *time.Time `json:"keyExpiry,omitempty"`
	Expired   bool       `json:"expired"`
	Online    bool       `json:"online"`
	Ephemeral bool       `json:"ephemeral"`
}

// serveNodes answers GET /debug/nodes.
func (s *server) serveNodes(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.tailnet.summaries())
}

func (t *tailnet) summaries() []nodeSummary {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	summaries := []nodeSummary{}
	for _, n := range t.sortedNodesLocked() {
		summary := nodeSummary{ID: string(n.StableID), Name: nameOf(n), Addresses: plainAddresses(n), Tags: n.Tags,
			Expired: t.expiredLocked(n), Online: n.streams > 0, Ephemeral: n.ephemeral}
		if !n.KeyExpiry.IsZero() {
			expiry := n.KeyExpiry
			summary.KeyExpiry = &expiry
		}
		summaries = append(summaries, summary)
	}
	return summaries
}

// serveLogin answers POST /debug/login: a device logs in by an auth key, without a client. Its keys are made up, so that it is
// never seen again.
func (s *server) serveLogin(w http.ResponseWriter, r *http.Request) {
	var wanted struct {
		AuthKey  string `json:"authKey"`
		Hostname string `json:"hostname"`
	}
	if err := readJSON(w, r, &wanted); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	request := &tailcfg.RegisterRequest{
		NodeKey: key.NewNode().Public(), Hostinfo: &tailcfg.Hostinfo{Hostname: wanted.Hostname},
		Auth: &tailcfg.RegisterResponseAuth{AuthKey: wanted.AuthKey},
	}
	if response := s.tailnet.register(request, key.NewMachine().Public()); response.Error != "" {
		writeError(w, http.StatusForbidden, response.Error)
		return
	}
	s.tailnet.mutex.Lock()
	id := s.tailnet.nodeByKeyLocked(request.NodeKey).StableID
	s.tailnet.mutex.Unlock()
	writeJSON(w, http.StatusOK, map[string]string{"id": string(id)})
}

// serveACL answers POST /debug/acl: the rules replace those that were there. Without rules everything is allowed.
func (s *server) serveACL(w http.ResponseWriter, r *http.Request) {
	var wanted struct {
		Rules json.RawMessage `json:"rules"`
	}
	if err := readJSON(w, r, &wanted); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	var rules *policy
	if wanted.Rules != nil {
		var err error
		if rules, err = parsePolicy(wanted.Rules); err != nil {
			writeError(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	s.tailnet.mutex.Lock()
	s.tailnet.policy = rules
	s.tailnet.notifyLocked()
	s.tailnet.mutex.Unlock()
	writeJSON(w, http.StatusOK, struct{}{})
}
