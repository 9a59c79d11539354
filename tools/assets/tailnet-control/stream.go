// Map streams: a map at once and after each change, and messages that keep the stream alive.

package main

import (
	"encoding/binary"
	"encoding/json"
	"net/http"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/util/zstdframe"
)

// Clients end a stream on which they heard nothing for two minutes.
const keepAliveInterval = 45 * time.Second

// stream sends a map at once and whenever something changes, until the client goes or its node does.
func (t *tailnet) stream(w http.ResponseWriter, r *http.Request, nodeKey key.NodePublic, compress bool) {
	changed := make(chan struct{}, 1)
	n := t.subscribe(nodeKey, changed)
	if n == nil {
		return
	}
	defer t.unsubscribe(n, changed)
	keepAlive := time.NewTicker(keepAliveInterval)
	defer keepAlive.Stop()
	var sent []tailcfg.NodeID
	for {
		response := t.mapFor(nodeKey)
		if response == nil {
			return
		}
		sent = removeGone(response, sent)
		if sendFrame(w, compress, response) != nil || !awaitChange(w, r, compress, changed, keepAlive.C) {
			return
		}
	}
}

// awaitChange keeps the stream alive meanwhile, and reports false when it has ended.
func awaitChange(w http.ResponseWriter, r *http.Request, compress bool, changed <-chan struct{}, keepAlive <-chan time.Time) bool {
	for {
		select {
		case <-r.Context().Done():
			return false
		case <-changed:
			return true
		case <-keepAlive:
			if sendFrame(w, compress, tailcfg.MapResponse{KeepAlive: true}) != nil {
				return false
			}
		}
	}
}

// removeGone names the peers that were sent before when there are none any more: an empty list of peers is left out of the
// message, and means that nothing changed. It returns those that are sent now.
func removeGone(response *tailcfg.MapResponse, before []tailcfg.NodeID) []tailcfg.NodeID {
	if len(response.Peers) == 0 {
		response.PeersRemoved = before
	}
	now := []tailcfg.NodeID{}
	for _, peer := range response.Peers {
		now = append(now, peer.ID)
	}
	return now
}

// subscribe makes the node online. It is nil when the node was deleted meanwhile.
func (t *tailnet) subscribe(nodeKey key.NodePublic, changed chan struct{}) *node {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	n := t.nodeByKeyLocked(nodeKey)
	if n != nil {
		t.notifyLocked() // before this stream is one of them: it sends its first map anyhow
		t.subscribers[changed] = struct{}{}
		n.streams++
		n.lastSeen = t.now()
	}
	return n
}

// unsubscribe takes the node itself: its key may be another one by now.
func (t *tailnet) unsubscribe(n *node, changed chan struct{}) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.subscribers, changed)
	n.streams--
	n.lastSeen = t.now()
	t.notifyLocked()
}

// sendFrame writes a message of a map stream: a little-endian length, then JSON, compressed if the client wants that.
func sendFrame(w http.ResponseWriter, compress bool, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if compress {
		body = zstdframe.AppendEncode(nil, body, zstdframe.FastestCompression)
	}
	frame := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	if _, err := w.Write(append(frame, body...)); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}
