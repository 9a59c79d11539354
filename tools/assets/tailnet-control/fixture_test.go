// What the tests share: a server with a clock of its own, and clients without a network.

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

const testSecret = "secret-of-the-tests"

// fixture is a server behind httptest, with a clock that tests turn.
type fixture struct {
	*testing.T
	*server
	url   string
	token string

	mutex sync.Mutex
	time  time.Time
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, time: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	f.server = newServer(newTailnet(netip.MustParsePrefix("100.64.0.0/16"), "pods.test", 30*time.Second),
		newOAuth("test-client", testSecret, time.Hour))
	f.server.tailnet.now, f.server.oauth.now = f.now, f.now
	web := httptest.NewServer(f.handler())
	t.Cleanup(web.Close)
	f.url = web.URL
	return f
}

func (f *fixture) now() time.Time {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.time
}

func (f *fixture) pass(duration time.Duration) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.time = f.time.Add(duration)
}

// login gets a token for the requests that follow.
func (f *fixture) login() {
	f.Helper()
	response, err := http.PostForm(f.url+"/api/v2/oauth/token", url.Values{"client_id": {"test-client"}, "client_secret": {testSecret}})
	if err != nil {
		f.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.AccessToken == "" || answer.ExpiresIn != 3600 {
		f.Fatalf("token: status %d, expires_in %d, error %v", response.StatusCode, answer.ExpiresIn, err)
	}
	f.token = answer.AccessToken
}

// call expects a status, and decodes the answer if it is to go anywhere.
func (f *fixture) call(method, path, body string, status int, into any) http.Header {
	f.Helper()
	request, err := http.NewRequest(method, f.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		f.Fatal(err)
	}
	if f.token != "" {
		request.Header.Set("Authorization", "Bearer "+f.token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		f.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != status {
		f.Fatalf("%s %s: status %d, want %d", method, path, response.StatusCode, status)
	}
	if into != nil {
		if err := json.NewDecoder(response.Body).Decode(into); err != nil {
			f.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return response.Header
}

type createdKey struct{ ID, Key string }

// createKey takes the fields of capabilities.devices.create.
func (f *fixture) createKey(create string) createdKey {
	f.Helper()
	var created createdKey
	body := `{"capabilities":{"devices":{"create":` + create + `}},"expirySeconds":300,"description":"pod default web"}`
	f.call("POST", "/api/v2/tailnet/-/keys", body, http.StatusOK, &created)
	return created
}

// client is what a Tailscale client keeps: the key of its machine and of its node.
type client struct {
	machine key.MachinePublic
	node    key.NodePublic
}

func newClient() *client {
	return &client{machine: key.NewMachine().Public(), node: key.NewNode().Public()}
}

func (c *client) request(secret string) *tailcfg.RegisterRequest {
	request := &tailcfg.RegisterRequest{NodeKey: c.node, Hostinfo: &tailcfg.Hostinfo{Hostname: "web"}}
	if secret != "" {
		request.Auth = &tailcfg.RegisterResponseAuth{AuthKey: secret}
	}
	return request
}

func (f *fixture) register(c *client, secret string) tailcfg.RegisterResponse {
	return f.tailnet.register(c.request(secret), c.machine)
}

func (f *fixture) mustRegister(c *client, secret string) {
	f.Helper()
	if response := f.register(c, secret); response.Error != "" || !response.MachineAuthorized {
		f.Fatalf("register: error %q, key expired %t", response.Error, response.NodeKeyExpired)
	}
}

func (f *fixture) mustRefuse(c *client, secret, reason string) {
	f.Helper()
	if response := f.register(c, secret); response.Error != reason {
		f.Fatalf("register: error %q, want %q", response.Error, reason)
	}
}

func (f *fixture) logout(c *client) {
	f.Helper()
	request := c.request("")
	request.Expiry = time.Unix(123, 0)
	if response := f.tailnet.register(request, c.machine); response.Error != "" || !response.NodeKeyExpired {
		f.Fatalf("logout: error %q, key expired %t", response.Error, response.NodeKeyExpired)
	}
}

func (f *fixture) summaries() []nodeSummary { return f.tailnet.summaries() }

// only is the one node that there is to be.
func (f *fixture) only() nodeSummary {
	f.Helper()
	all := f.summaries()
	if len(all) != 1 {
		f.Fatalf("nodes %+v, want one", all)
	}
	return all[0]
}
