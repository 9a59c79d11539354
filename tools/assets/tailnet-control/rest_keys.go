// The REST API of auth keys: create and delete.

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"time"
)

const defaultKeyLifetime = 90 * 24 * time.Hour

// keyDescription is what Tailscale's service takes as the description of a key.
var keyDescription = regexp.MustCompile(`^[A-Za-z0-9 -]{0,50}$`)

// keyCapabilities and keyRequest are the documented form of POST /api/v2/tailnet/-/keys.
type keyCapabilities struct {
	Devices struct {
		Create struct {
			Reusable      bool     `json:"reusable"`
			Ephemeral     bool     `json:"ephemeral"`
			Preauthorized bool     `json:"preauthorized"`
			Tags          []string `json:"tags"`
		} `json:"create"`
	} `json:"devices"`
}

type keyRequest struct {
	Capabilities  keyCapabilities `json:"capabilities"`
	ExpirySeconds int64           `json:"expirySeconds"`
	Description   string          `json:"description"`
}

func (q *keyRequest) check() error {
	tags := q.Capabilities.Devices.Create.Tags
	if len(tags) == 0 {
		return fmt.Errorf("capabilities.devices.create.tags %q must not be empty for a key of an OAuth client", tags)
	}
	if wrong, found := wrongTag(tags); found {
		return fmt.Errorf("capabilities.devices.create.tags %q must begin with \"tag:\"", wrong)
	}
	if limit := int64(defaultKeyLifetime / time.Second); q.ExpirySeconds < 0 || q.ExpirySeconds > limit {
		return fmt.Errorf("expirySeconds %d must be 0 to %d", q.ExpirySeconds, limit)
	}
	if !keyDescription.MatchString(q.Description) {
		return fmt.Errorf("description %q must be at most 50 letters, digits, hyphens and spaces", q.Description)
	}
	return nil
}

func (s *server) serveCreateKey(w http.ResponseWriter, r *http.Request) {
	var request keyRequest
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, requestBytes)).Decode(&request)
	if err == nil {
		err = request.check()
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	lifetime := cmp.Or(time.Duration(request.ExpirySeconds)*time.Second, defaultKeyLifetime)
	create := request.Capabilities.Devices.Create
	k := &authKey{
		reusable: create.Reusable, ephemeral: create.Ephemeral, preauthorized: create.Preauthorized,
		tags: create.Tags, description: request.Description, expires: s.tailnet.now().Add(lifetime),
	}
	secret := s.tailnet.addAuthKey(k)
	writeJSON(w, http.StatusOK, map[string]any{
		"id": k.id, "key": secret, "keyType": "auth", "description": k.description, "capabilities": request.Capabilities,
		"created": timestamp(k.created), "expires": timestamp(k.expires),
	})
}

func (s *server) serveDeleteKey(w http.ResponseWriter, r *http.Request) {
	if !s.tailnet.revokeAuthKey(r.PathValue("id")) {
		writeError(w, http.StatusNotFound, fmt.Sprintf("key %q does not exist", r.PathValue("id")))
		return
	}
	w.WriteHeader(http.StatusOK)
}
