package main

import (
	"encoding/binary"
	"errors"
	"io"
)

// Frames of the documented protocol: u32be length of what follows, type, body (docs/relay.md, "Protocol").
const (
	typeRegister = 0x01
	typeData     = 0x02

	headBytes = 5
	keyBytes  = 32
	maxLength = 65536
)

type key [keyBytes]byte

var errBadLength = errors.New("a frame's length is 1 to 65,536")

// readFrame reads one frame: its type, and its body in memory of its own.
func readFrame(from io.Reader) (byte, []byte, error) {
	head := make([]byte, headBytes)
	if _, err := io.ReadFull(from, head); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head)
	if length < 1 || length > maxLength {
		return 0, nil, errBadLength
	}
	body := make([]byte, length-1)
	_, err := io.ReadFull(from, body)
	return head[4], body, err
}

// dataFrame is a whole Data frame from the given sender.
func dataFrame(sender key, payload []byte) []byte {
	frame := make([]byte, headBytes+keyBytes+len(payload))
	binary.BigEndian.PutUint32(frame, uint32(1+keyBytes+len(payload)))
	frame[4] = typeData
	copy(frame[headBytes:], sender[:])
	copy(frame[headBytes+keyBytes:], payload)
	return frame
}
