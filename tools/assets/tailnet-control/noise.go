// The control protocol ts2021: HTTP/2 in a connection that Noise encrypts and authenticates.

package main

import (
	"log"
	"net/http"
	"time"

	"golang.org/x/net/http2"
	"tailscale.com/control/controlhttp/controlhttpserver"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// A client that has gone without a word, with its network namespace for example, is noticed by an unanswered ping after
// this long, so that its node goes offline.
const (
	pingAfter   = 15 * time.Second
	pingTimeout = 10 * time.Second
)

// serveKey answers GET /key: the public key that clients expect in the Noise handshake.
func (s *server) serveKey(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, tailcfg.OverTLSPublicKeyResponse{PublicKey: s.machineKey.Public()})
}

// serveNoise answers /ts2021: the connection is upgraded to Noise, and within it the client speaks HTTP/2. The handshake
// proves the client's machine key.
func (s *server) serveNoise(w http.ResponseWriter, r *http.Request) {
	conn, err := controlhttpserver.AcceptHTTP(r.Context(), w, r, s.machineKey, nil)
	if err != nil {
		log.Printf("noise: handshake with %s: %v", r.RemoteAddr, err)
		return
	}
	defer conn.Close()
	protocol := &http2.Server{ReadIdleTimeout: pingAfter, PingTimeout: pingTimeout}
	protocol.ServeConn(conn, &http2.ServeConnOpts{
		Context:    r.Context(),
		BaseConfig: &http.Server{Handler: s.faults.around(s.noiseHandler(conn.Peer()))},
	})
}

func (s *server) noiseHandler(machine key.MachinePublic) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /machine/register", func(w http.ResponseWriter, r *http.Request) { s.serveRegister(w, r, machine) })
	mux.HandleFunc("POST /machine/map", func(w http.ResponseWriter, r *http.Request) { s.serveMap(w, r, machine) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		log.Printf("noise: no answer for %s %s", r.Method, r.URL.Path)
		http.NotFound(w, r)
	})
	return mux
}
