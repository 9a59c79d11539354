package main

import (
	"bufio"
	"net"
	"time"
)

// Sizes of the Go relay of the documented protocol, as measured on it: a queue counted in frames, a buffer for writes of
// each connection, and so many frames for one flush.
const (
	queueFrames   = 256
	writeBytes    = 64 << 10
	readBytes     = 4 << 10
	batchFrames   = 256
	writeDeadline = 2 * time.Second
)

type peer struct {
	conn  net.Conn
	queue chan []byte
	gone  chan struct{}
}

func newPeer(conn net.Conn) *peer {
	p := &peer{conn: conn, queue: make(chan []byte, queueFrames), gone: make(chan struct{})}
	go p.write()
	return p
}

// send never waits: a frame that finds the queue full is lost.
func (p *peer) send(frame []byte) {
	select {
	case p.queue <- frame:
	default:
	}
}

// write takes what waits, up to a batch, and flushes once for all of it.
func (p *peer) write() {
	defer p.conn.Close()
	writer := bufio.NewWriterSize(p.conn, writeBytes)
	for {
		select {
		case frame := <-p.queue:
			if p.writeBatch(writer, frame) != nil {
				return
			}
		case <-p.gone:
			return
		}
	}
}

func (p *peer) writeBatch(writer *bufio.Writer, first []byte) error {
	if err := p.conn.SetWriteDeadline(time.Now().Add(writeDeadline)); err != nil {
		return err
	}
	if _, err := writer.Write(first); err != nil {
		return err
	}
	for range batchFrames - 1 {
		select {
		case frame := <-p.queue:
			if _, err := writer.Write(frame); err != nil {
				return err
			}
			continue
		default:
		}
		break
	}
	return writer.Flush()
}
