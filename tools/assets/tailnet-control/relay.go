// The DERP relay and the STUN server that the network map names.

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"

	"tailscale.com/derp/derpserver"
	"tailscale.com/net/stunserver"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

const relayRegion = 900

// startRelay listens for DERP (over TLS) and STUN, and is the only region of the map that it returns.
func startRelay(ctx context.Context, derpAddress, stunAddress string) (*tailcfg.DERPMap, error) {
	listener, err := net.Listen("tcp", derpAddress)
	if err != nil {
		return nil, fmt.Errorf("-derp: %w", err)
	}
	address := listener.Addr().(*net.TCPAddr)
	if address.IP.IsUnspecified() {
		return nil, fmt.Errorf("-derp %s must name an address that clients reach", derpAddress)
	}
	certificate, err := selfSigned(address.IP)
	if err != nil {
		return nil, fmt.Errorf("certificate for -derp %s: %w", derpAddress, err)
	}
	stun := stunserver.New(ctx)
	if err := stun.Listen(stunAddress); err != nil {
		return nil, fmt.Errorf("-stun: %w", err)
	}
	stunListens := stun.LocalAddr().(*net.UDPAddr)
	if !stunListens.IP.Equal(address.IP) && !stunListens.IP.IsUnspecified() {
		return nil, fmt.Errorf("-stun %s must be at the address of -derp %s: a region's node has one", stunAddress, derpAddress)
	}
	go func() { log.Print("STUN ended: ", stun.Serve()) }()
	go serveDERP(ctx, listener, certificate)
	return relayMap(address, stunListens.Port), nil
}

// serveDERP stays with HTTP/1.1, because DERP takes the connection over.
func serveDERP(ctx context.Context, listener net.Listener, certificate tls.Certificate) {
	relay := derpserver.New(key.NewNode(), func(string, ...any) {})
	context.AfterFunc(ctx, func() { relay.Close(); listener.Close() })
	web := &http.Server{
		Handler: derpserver.Handler(relay), ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: headerTimeout,
		TLSConfig:    &tls.Config{Certificates: []tls.Certificate{certificate}},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	log.Print("DERP ended: ", web.ServeTLS(listener, "", ""))
}

// relayMap has the relay as one node, whose certificate clients do not check.
func relayMap(address *net.TCPAddr, stunPort int) *tailcfg.DERPMap {
	relay := &tailcfg.DERPNode{
		Name: "900a", RegionID: relayRegion, HostName: address.IP.String(), IPv4: "none", IPv6: "none",
		DERPPort: address.Port, STUNPort: stunPort, InsecureForTests: true,
	}
	if address.IP.To4() != nil {
		relay.IPv4 = address.IP.String()
	} else {
		relay.IPv6 = address.IP.String()
	}
	region := &tailcfg.DERPRegion{RegionID: relayRegion, RegionCode: "test", RegionName: "test", Nodes: []*tailcfg.DERPNode{relay}}
	return &tailcfg.DERPMap{OmitDefaultRegions: true, Regions: map[int]*tailcfg.DERPRegion{relayRegion: region}}
}

func selfSigned(address net.IP) (tls.Certificate, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{address},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}
