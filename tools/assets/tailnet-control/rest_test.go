// The REST API: tokens, auth keys, devices.

package main

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"
)

const devicesPath = "/api/v2/tailnet/-/devices"

type deviceList struct {
	Devices []struct {
		ID, NodeID, Name string
		Addresses, Tags  []string
		IsEphemeral      bool
	}
}

func TestTokenIsNeededAndExpires(t *testing.T) {
	f := newFixture(t)
	f.call("GET", devicesPath, "", http.StatusUnauthorized, nil)
	f.login()
	f.call("GET", devicesPath, "", http.StatusOK, nil)
	f.pass(time.Hour)
	f.call("GET", devicesPath, "", http.StatusUnauthorized, nil)
	f.token = "made up"
	f.call("GET", devicesPath, "", http.StatusUnauthorized, nil)
}

func TestWrongClientSecretGetsNoToken(t *testing.T) {
	f := newFixture(t)
	response, err := http.PostForm(f.url+"/api/v2/oauth/token", url.Values{"client_id": {"test-client"}, "client_secret": {"wrong"}})
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Fatalf("status %d, want 401", response.StatusCode)
	}
	if newOAuth("test-client", "", time.Hour).knows("test-client", "") {
		t.Fatal("a server without a secret accepts an empty one")
	}
}

func TestKeyRequestsAreChecked(t *testing.T) {
	f := newFixture(t)
	f.login()
	for body, message := range map[string]string{
		`{}`: `capabilities.devices.create.tags [] must not be empty for a key of an OAuth client`,
		`{"capabilities":{"devices":{"create":{"tags":["web"]}}}}`:                                   `capabilities.devices.create.tags "web" must begin with "tag:"`,
		`{"capabilities":{"devices":{"create":{"tags":["tag:a"]}}},"expirySeconds":-1}`:              `expirySeconds -1 must be 0 to 7776000`,
		`{"capabilities":{"devices":{"create":{"tags":["tag:a"]}}},"description":"pod default/web"}`: `description "pod default/web" must be at most 50 letters, digits, hyphens and spaces`,
	} {
		var answer struct{ Message string }
		f.call("POST", "/api/v2/tailnet/-/keys", body, http.StatusBadRequest, &answer)
		if answer.Message != message {
			t.Errorf("%s: message %q, want %q", body, answer.Message, message)
		}
	}
}

func TestSingleUseKeyIsUsedUpAndTags(t *testing.T) {
	f := newFixture(t)
	f.login()
	created := f.createKey(`{"tags":["tag:a","tag:b"]}`)
	f.mustRegister(newClient(), created.Key)
	f.mustRefuse(newClient(), created.Key, "invalid key: already used")
	if tags := f.only().Tags; !slices.Equal(tags, []string{"tag:a", "tag:b"}) {
		t.Fatalf("tags %q", tags)
	}
}

func TestReusableKeyExpires(t *testing.T) {
	f := newFixture(t)
	f.login()
	created := f.createKey(`{"reusable":true,"tags":["tag:a"]}`)
	f.mustRegister(newClient(), created.Key)
	f.mustRegister(newClient(), created.Key)
	f.pass(5 * time.Minute)
	f.mustRefuse(newClient(), created.Key, "invalid key: expired")
}

func TestDeletedKeyIsRevoked(t *testing.T) {
	f := newFixture(t)
	f.login()
	created := f.createKey(`{"reusable":true,"tags":["tag:a"]}`)
	f.mustRegister(newClient(), created.Key)
	f.call("DELETE", "/api/v2/tailnet/-/keys/"+created.ID, "", http.StatusOK, nil)
	f.call("DELETE", "/api/v2/tailnet/-/keys/"+created.ID, "", http.StatusNotFound, nil)
	f.mustRefuse(newClient(), created.Key, "invalid key: API key does not exist")
	f.only() // who came in with it stays
}

func TestDevicesAreListedAndDeletedForGood(t *testing.T) {
	f := newFixture(t)
	f.login()
	first, second := newClient(), newClient()
	f.mustRegister(first, f.createKey(`{"tags":["tag:a"]}`).Key)
	f.mustRegister(second, f.createKey(`{"ephemeral":true,"tags":["tag:a"]}`).Key)
	var list deviceList
	f.call("GET", devicesPath, "", http.StatusOK, &list)
	if len(list.Devices) != 2 || list.Devices[0].Name != "web.pods.test" || list.Devices[1].Name != "web-1.pods.test" ||
		list.Devices[0].IsEphemeral || !list.Devices[1].IsEphemeral ||
		!slices.Equal(list.Devices[1].Addresses, []string{"100.64.0.2", "fd7a:115c:a1e0:ab12:4843:cd96:6240:2"}) {
		t.Fatalf("devices %+v", list.Devices)
	}
	path := "/api/v2/device/" + list.Devices[1].NodeID
	f.call("GET", path, "", http.StatusOK, nil)
	f.call("DELETE", path, "", http.StatusOK, nil)
	f.call("GET", path, "", http.StatusNotFound, nil)
	f.call("DELETE", path, "", http.StatusNotFound, nil)
	f.call("DELETE", "/api/v2/device/"+list.Devices[0].ID, "", http.StatusOK, nil)
	f.mustRefuse(second, "", "an auth key is needed")
	f.mustRegister(second, f.createKey(`{"tags":["tag:a"]}`).Key)
	if address := f.only().Addresses[0]; address != "100.64.0.3" {
		t.Fatalf("address %s: one that was deleted is given again", address)
	}
}

func TestOversizedBodyIsRefused(t *testing.T) {
	f := newFixture(t)
	f.login()
	body := `{"description":"` + string(make([]byte, requestBytes)) + `"}`
	f.call("POST", "/api/v2/tailnet/-/keys", body, http.StatusBadRequest, nil)
}

func TestRulesAreReplacedAtRunTime(t *testing.T) {
	f := newFixture(t)
	f.call(http.MethodPost, "/debug/acl", `{"rules":[{"from":["tag:a"],"to":["tag:b"],"ports":"53"}]}`, http.StatusOK, nil)
	if f.tailnet.policy == nil || len(f.tailnet.policy.rules) != 1 {
		t.Errorf("policy %+v", f.tailnet.policy)
	}
	f.call(http.MethodPost, "/debug/acl", `{"rules":[{"from":["b"]}]}`, http.StatusBadRequest, nil)
	f.call(http.MethodPost, "/debug/acl", `{}`, http.StatusOK, nil)
	if f.tailnet.policy != nil {
		t.Error("rules are left")
	}
}
