// Tokens of the REST API, for the credentials of an OAuth client.

package main

import (
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"
)

// oauth is the one OAuth client of the tailnet, and the tokens it was given.
type oauth struct {
	clientID, clientSecret string
	lifetime               time.Duration
	now                    func() time.Time // replaced in tests of expiry

	mutex  sync.Mutex
	tokens map[string]time.Time // until when they are valid
}

// newOAuth without a secret gives no token to anyone.
func newOAuth(clientID, clientSecret string, lifetime time.Duration) *oauth {
	return &oauth{clientID: clientID, clientSecret: clientSecret, lifetime: lifetime, now: time.Now, tokens: map[string]time.Time{}}
}

func (o *oauth) knows(id, secret string) bool {
	return o.clientSecret != "" && id == o.clientID && subtle.ConstantTimeCompare([]byte(secret), []byte(o.clientSecret)) == 1
}

// newToken forgets those that have expired.
func (o *oauth) newToken() string {
	token := "tskey-api-" + randomHex(12)
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for old, expires := range o.tokens {
		if !o.now().Before(expires) {
			delete(o.tokens, old)
		}
	}
	o.tokens[token] = o.now().Add(o.lifetime)
	return token
}

func (o *oauth) accepts(token string) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.now().Before(o.tokens[token])
}

// serveToken answers POST /api/v2/oauth/token. The credentials come in the form, or as basic authorization.
func (s *server) serveToken(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, requestBytes)
	if err := r.ParseForm(); err != nil {
		writeError(w, http.StatusBadRequest, "form: "+err.Error())
		return
	}
	id, secret := r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	if user, password, ok := r.BasicAuth(); ok {
		id, secret = user, password
	}
	if !s.oauth.knows(id, secret) {
		writeError(w, http.StatusUnauthorized, "API token invalid")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": s.oauth.newToken(), "token_type": "Bearer", "scope": "all",
		"expires_in": int(s.oauth.lifetime.Seconds()),
	})
}

// authorized answers 401 to requests without a valid token.
func (s *server) authorized(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !isBearer || !s.oauth.accepts(token) {
			writeError(w, http.StatusUnauthorized, "API token invalid")
			return
		}
		next(w, r)
	}
}
