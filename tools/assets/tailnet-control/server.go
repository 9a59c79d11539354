// The HTTP server: which path is answered where, and the forms of bodies.

package main

import (
	"encoding/json"
	"fmt"
	"net/http"

	"tailscale.com/types/key"
)

// server is what HTTP requests reach: the tailnet, the credentials of the REST API, and faults.
type server struct {
	tailnet    *tailnet
	machineKey key.MachinePrivate
	faults     *faults
	oauth      *oauth
}

func newServer(t *tailnet, o *oauth) *server {
	return &server{tailnet: t, machineKey: key.NewMachine(), faults: newFaults(), oauth: o}
}

// handler is everything that is reached without Noise.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /key", s.serveKey)
	mux.HandleFunc("/ts2021", s.serveNoise)
	mux.HandleFunc("GET /generate_204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("POST /api/v2/oauth/token", s.serveToken)
	mux.HandleFunc("POST /api/v2/tailnet/{tailnet}/keys", s.authorized(s.serveCreateKey))
	mux.HandleFunc("DELETE /api/v2/tailnet/{tailnet}/keys/{id}", s.authorized(s.serveDeleteKey))
	mux.HandleFunc("GET /api/v2/tailnet/{tailnet}/devices", s.authorized(s.serveDevices))
	mux.HandleFunc("GET /api/v2/device/{id}", s.authorized(s.serveDevice))
	mux.HandleFunc("DELETE /api/v2/device/{id}", s.authorized(s.serveDeleteDevice))
	mux.HandleFunc("POST /api/v2/device/{id}/expire", s.authorized(s.serveExpireDevice))
	mux.HandleFunc("POST /debug/map", s.serveHostileMap)
	mux.HandleFunc("POST /debug/acl", s.serveACL)
	mux.HandleFunc("POST /debug/fail", s.faults.serveSet)
	mux.HandleFunc("GET /debug/stats", s.serveStats)
	mux.HandleFunc("GET /debug/nodes", s.serveNodes)
	mux.HandleFunc("POST /debug/login", s.serveLogin)
	return s.faults.around(mux)
}

// readJSON refuses fields that do not exist: a test that misspells one would test nothing.
func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, requestBytes))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(value) // fails only when the client has gone
}

// writeError has the form of the REST API's errors.
func writeError(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, map[string]string{"message": message})
}
