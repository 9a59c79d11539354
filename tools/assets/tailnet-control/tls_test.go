// TLS: the REST API and the upgrade to Noise, both over HTTP/1.1, and logins without a client.

package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// writeCertificate makes a certificate for 127.0.0.1 and its key, as files.
func writeCertificate(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{{127, 0, 0, 1}},
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	certFile, keyFile = filepath.Join(folder, "cert"), filepath.Join(folder, "key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots = x509.NewCertPool()
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(certificate)
	return certFile, keyFile, roots
}

func TestServesOverTLSByHTTP1Only(t *testing.T) {
	f := newFixture(t)
	certFile, keyFile, roots := writeCertificate(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := newWeb(f.handler())
	t.Cleanup(func() { web.Shutdown(context.Background()) })
	go serve(web, listener, &options{tlsCert: certFile, tlsKey: keyFile})
	conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: roots, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if protocol := conn.ConnectionState().NegotiatedProtocol; protocol == "h2" {
		t.Fatal("HTTP/2, by which nothing can be upgraded to Noise")
	}
	request, _ := http.NewRequest("GET", "https://127.0.0.1/generate_204", nil)
	if err := request.Write(conn); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil || response.StatusCode != http.StatusNoContent {
		t.Fatalf("response %v, error %v", response, err)
	}
}

func TestMissingCertificateIsRefused(t *testing.T) {
	if err := serve(newWeb(nil), nil, &options{tlsCert: "/nonexistent"}); err == nil {
		t.Fatal("serves without a certificate")
	}
}

func TestDebugLoginUsesUpTheKey(t *testing.T) {
	f := newFixture(t)
	f.login()
	body := `{"authKey":"` + f.createKey(`{"tags":["tag:a"]}`).Key + `","hostname":"web"}`
	var answer struct{ ID string }
	f.call("POST", "/debug/login", body, http.StatusOK, &answer)
	if node := f.only(); node.ID != answer.ID || node.Name != "web.pods.test" {
		t.Fatalf("node %+v, answer %+v", node, answer)
	}
	f.call("POST", "/debug/login", body, http.StatusForbidden, nil)
}
