// tailnet-control is a control server for tests: real Tailscale clients log in to it, without internet. It keeps one tailnet
// in memory, speaks the clients' protocol (ts2021, with Tailscale's own types), answers the part of Tailscale's REST API that
// we use, and is a DERP relay and a STUN server. By requests to /debug/ it fails, or tells clients what a hostile server would.
//
// It prints "ready URL" when everything listens. Whoever reaches it controls it: it is for a test's own network only.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"tailscale.com/net/tsaddr"
)

const (
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = maximalDelay + 30*time.Second
	idleTimeout   = 2 * time.Minute
	// How long the key of -auth-key-file is valid: longer than any test.
	staticKeyLifetime = 1000 * time.Hour
)

type options struct {
	listen, derp, stun, suffix, prefix, acl string
	clientID, clientSecretFile, authKeyFile string
	authKeyTags, tlsCert, tlsKey            string
	ephemeralTTL, tokenLifetime             time.Duration
}

func parseFlags() *options {
	o := &options{}
	flag.StringVar(&o.listen, "listen", "127.0.0.1:8080", "`ADDRESS:PORT` of the control protocol and the REST API")
	flag.StringVar(&o.tlsCert, "tls-cert", "", "`FILE` with the certificate (PEM) of -listen; without it there is no TLS")
	flag.StringVar(&o.tlsKey, "tls-key", "", "`FILE` with the certificate's private key (PEM)")
	flag.StringVar(&o.derp, "derp", "127.0.0.1:3443", "`ADDRESS:PORT` of the DERP relay (TLS, self-signed)")
	flag.StringVar(&o.stun, "stun", "127.0.0.1:3478", "`ADDRESS:PORT` of STUN")
	flag.StringVar(&o.suffix, "suffix", "pods.test", "MagicDNS `SUFFIX` of all names")
	flag.StringVar(&o.prefix, "prefix", "100.64.0.0/16", "`PREFIX` of the nodes' IPv4 addresses, in 100.64.0.0/10")
	flag.StringVar(&o.acl, "acl", "", "`FILE` with rules by tags (JSON); without it everything is allowed")
	flag.StringVar(&o.clientID, "client-id", "test-client", "`ID` of the OAuth client")
	flag.StringVar(&o.clientSecretFile, "client-secret-file", "", "`FILE` with the OAuth client's secret; without it no token is given")
	flag.StringVar(&o.authKeyFile, "auth-key-file", "", "`FILE` with a reusable auth key that is valid from the start")
	flag.StringVar(&o.authKeyTags, "auth-key-tags", "tag:k8s-pod", "`TAGS` of nodes that log in with it, by commas")
	flag.DurationVar(&o.ephemeralTTL, "ephemeral-ttl", 30*time.Second, "remove ephemeral nodes that are offline this long")
	flag.DurationVar(&o.tokenLifetime, "token-lifetime", time.Hour, "how long a token of the REST API is valid")
	flag.Parse()
	return o
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, parseFlags()); err != nil {
		log.Fatal("tailnet-control: ", err)
	}
}

func run(ctx context.Context, o *options) error {
	s, err := setUp(o)
	if err != nil {
		return err
	}
	if s.tailnet.relays, err = startRelay(ctx, o.derp, o.stun); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	if listener.Addr().(*net.TCPAddr).IP.IsUnspecified() {
		return fmt.Errorf("-listen %s must name an address that clients reach", o.listen)
	}
	go removeStaleEverySecond(ctx, s.tailnet)
	// A connection that is taken over for Noise loses these time-outs.
	web := newWeb(s.handler())
	context.AfterFunc(ctx, func() { web.Close() })
	if err := serve(web, listener, o); ctx.Err() == nil {
		return err
	}
	return nil
}

// newWeb speaks HTTP/1.1 only: the Noise connection is an upgrade, which takes the whole connection over.
func newWeb(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
}

// serve prints where the server is reached, and ends with an error.
func serve(web *http.Server, listener net.Listener, o *options) error {
	if o.tlsCert == "" {
		fmt.Printf("ready http://%s\n", listener.Addr())
		return web.Serve(listener)
	}
	certificate, err := tls.LoadX509KeyPair(o.tlsCert, o.tlsKey)
	if err != nil {
		return fmt.Errorf("-tls-cert and -tls-key: %w", err)
	}
	web.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
	fmt.Printf("ready https://%s\n", listener.Addr())
	return web.ServeTLS(listener, "", "")
}

// setUp makes the server of the flags, before anything listens.
func setUp(o *options) (*server, error) {
	prefix, err := netip.ParsePrefix(o.prefix)
	if err != nil || !prefix.Addr().Is4() || prefix.Bits() < tsaddr.CGNATRange().Bits() || !tsaddr.CGNATRange().Contains(prefix.Addr()) {
		return nil, fmt.Errorf("-prefix %q must be an IPv4 prefix in %s", o.prefix, tsaddr.CGNATRange())
	}
	t := newTailnet(prefix, o.suffix, o.ephemeralTTL)
	if o.acl != "" {
		if t.policy, err = readPolicy(o.acl); err != nil {
			return nil, err
		}
	}
	clientSecret, err := readSecret("-client-secret-file", o.clientSecretFile)
	if err != nil {
		return nil, err
	}
	authKeySecret, err := readSecret("-auth-key-file", o.authKeyFile)
	if err != nil {
		return nil, err
	}
	if authKeySecret != "" {
		tags := strings.Split(o.authKeyTags, ",")
		if wrong, found := wrongTag(tags); found {
			return nil, fmt.Errorf("-auth-key-tags %q must begin with \"tag:\"", wrong)
		}
		t.acceptAuthKey(authKeySecret, &authKey{id: "static", reusable: true, tags: tags, expires: t.now().Add(staticKeyLifetime)})
	}
	return newServer(t, newOAuth(o.clientID, clientSecret, o.tokenLifetime)), nil
}

// readSecret takes secrets from files, because arguments are seen by every process of the machine.
func readSecret(flagName, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flagName, err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("%s %s must not be empty", flagName, path)
	}
	return secret, nil
}

func removeStaleEverySecond(ctx context.Context, t *tailnet) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			t.removeStale()
		}
	}
}
