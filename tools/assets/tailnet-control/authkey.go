// Auth keys: what a client logs in with, and why one is refused.

package main

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// authKey is what a client logs in with.
type authKey struct {
	id, description                    string
	reusable, ephemeral, preauthorized bool
	tags                               []string
	created, expires                   time.Time
	uses                               int
	revoked                            bool
}

// addAuthKey gives the key an ID and returns its secret, which nothing else holds.
func (t *tailnet) addAuthKey(k *authKey) string {
	k.id = "k" + randomHex(6) + "CNTRL"
	secret := "tskey-auth-" + k.id + "-" + randomHex(16)
	t.acceptAuthKey(secret, k)
	return secret
}

// acceptAuthKey makes a secret that was chosen elsewhere valid.
func (t *tailnet) acceptAuthKey(secret string, k *authKey) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	k.created = t.now()
	t.authKeys[secret] = k
}

// revokeAuthKey reports whether there is a key of this ID that was not revoked before. Nodes that it let in stay.
func (t *tailnet) revokeAuthKey(id string) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, k := range t.authKeys {
		if k.id == id && !k.revoked {
			k.revoked = true
			return true
		}
	}
	return false
}

// checkAuthKeyLocked finds the key of a secret and says why it may not be used, in the words of Tailscale's service. The
// secret itself is never part of an error: errors are logged.
func (t *tailnet) checkAuthKeyLocked(secret string) (*authKey, error) {
	k := t.authKeys[secret]
	switch {
	case k == nil || k.revoked:
		return nil, errors.New("invalid key: API key does not exist")
	case !t.now().Before(k.expires):
		return nil, errors.New("invalid key: expired")
	case !k.reusable && k.uses > 0:
		return nil, errors.New("invalid key: already used")
	}
	return k, nil
}

// wrongTag is the first value that is no tag.
func wrongTag(tags []string) (string, bool) {
	at := slices.IndexFunc(tags, func(tag string) bool { return !strings.HasPrefix(tag, "tag:") || len(tag) == len("tag:") })
	if at < 0 {
		return "", false
	}
	return tags[at], true
}
