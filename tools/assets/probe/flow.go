package main

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

type lossSpan struct {
	FirstNumber int   `json:"firstNumber"`
	LastNumber  int   `json:"lastNumber"`
	AtMillis    int64 `json:"atMillis"`
}

type flowReport struct {
	Sent       int   `json:"sent"`
	Received   int   `json:"received"`
	Lost       int   `json:"lost"`
	SendErrors int64 `json:"sendErrors"`
	// The longest time in which an answer was due and none came.
	LargestGapMillis int64      `json:"largestGapMillis"`
	Losses           []lossSpan `json:"losses"`
	// The wall clock at which AtMillis is 0.
	StartedUnixMillis int64 `json:"startedUnixMillis"`
}

const (
	datagramSize  = 200
	lastAnswers   = 2 * time.Second // how long after the last datagram answers still count
	reportedSpans = 200
	longGap       = 100 * time.Millisecond // looked at again once it is known when nobody could read answers
	// What a sender may catch up with at once that had to wait for a processor. More would be a burst that no flow of its
	// rate has, and that queues on the way cannot hold: WireGuard's are 1,024 packets long.
	mostBehind = 20 * time.Millisecond
)

// span is a time of the flow, from its start.
type span struct{ from, to time.Duration }

// schedule says when each datagram is due; where the sender fell behind, the rest moves.
type schedule struct {
	interval time.Duration
	delays   []scheduleDelay
	// When the sender should have run and did not: nor did what reads the answers.
	stalls []span
}

type scheduleDelay struct {
	fromNumber int
	total      time.Duration
}

func (s *schedule) due(number int) time.Duration {
	at := time.Duration(number) * s.interval
	for index := len(s.delays) - 1; index >= 0; index-- {
		if s.delays[index].fromNumber <= number {
			return at + s.delays[index].total
		}
	}
	return at
}

func (s *schedule) fellBehind(number int, by time.Duration) {
	total := by - mostBehind
	due := s.due(number)
	s.stalls = append(s.stalls, span{due, due + by})
	if n := len(s.delays); n > 0 {
		total += s.delays[n-1].total
	}
	s.delays = append(s.delays, scheduleDelay{number, total})
}

// flow sends numbered datagrams at a steady rate to an echo server and reports which came back: one datagram lost in
// either direction is one lost.
func flow(args []string) error {
	untilEOF := len(args) == 4 && args[3] == "until-eof"
	if len(args) != 3 && !untilEOF {
		return errors.New("needs HOST:PORT PER_SECOND SECONDS [until-eof]")
	}
	rate, err1 := strconv.Atoi(args[1])
	seconds, err2 := strconv.Atoi(args[2])
	if err1 != nil || err2 != nil || rate < 1 || rate > 10000 || seconds < 1 || seconds > 3600 {
		return errors.New("PER_SECOND is 1..10000 and SECONDS 1..3600")
	}
	connection, err := net.Dial("udp", args[0])
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := roomyBuffer(connection.(*net.UDPConn)); err != nil {
		return err
	}
	total := rate * seconds
	answers := newAnswers(total)
	done := make(chan struct{})
	go answers.receive(connection, done)
	ended := make(chan struct{})
	if untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			close(ended)
		}()
	}

	var sendErrors int64
	plan := schedule{interval: time.Second / time.Duration(rate)}
	data := payload(datagramSize)
	sent := 0
	for number := range total {
		if isClosed(ended) {
			break
		}
		sent++
		if wait := time.Until(answers.start.Add(plan.due(number))); wait > 0 {
			time.Sleep(wait)
		} else if -wait > mostBehind {
			plan.fellBehind(number, -wait)
		}
		binary.BigEndian.PutUint32(data, uint32(number))
		answers.sentAt[number].Store(int64(time.Since(answers.start)))
		if _, err := connection.Write(data); err != nil {
			sendErrors++ // counted as lost too: no answer will come
		}
	}
	time.Sleep(lastAnswers)
	_ = connection.SetReadDeadline(time.Now())
	<-done
	return printJSON(summarize(answers, sent, plan, sendErrors))
}

func isClosed(channel chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// answers is what came back of a flow's datagrams, by their numbers.
type answers struct {
	start   time.Time
	sentAt  []atomic.Int64 // nanoseconds after start
	arrived []atomic.Bool
	gap     time.Duration // the longest of the short ones
	gaps    []span        // the long ones
}

func newAnswers(total int) *answers {
	return &answers{start: time.Now(), sentAt: make([]atomic.Int64, total), arrived: make([]atomic.Bool, total)}
}

func (a *answers) receive(connection net.Conn, done chan struct{}) {
	defer close(done)
	buffer := make([]byte, 2048)
	var last time.Duration
	highest := -1
	for {
		n, err := connection.Read(buffer)
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			return
		}
		if err != nil || n != datagramSize {
			continue
		}
		now := time.Since(a.start)
		if since := a.dueSince(highest+1, last); now-since >= longGap {
			a.gaps = append(a.gaps, span{since, now})
		} else {
			a.gap = max(a.gap, now-since)
		}
		last = now
		if number := int(binary.BigEndian.Uint32(buffer)); number < len(a.arrived) {
			a.arrived[number].Store(true)
			highest = max(highest, number)
		}
	}
}

// dueSince is since when an answer was due at the last one: at once, if the next datagram was on its way then, or since
// that was sent. A sender that had to wait for a processor sends nothing, which is no gap of the network.
func (a *answers) dueSince(next int, last time.Duration) time.Duration {
	if next >= len(a.sentAt) {
		return last
	}
	return max(last, time.Duration(a.sentAt[next].Load()))
}

// largestGap is the longest time in which an answer was due and none came, without that in which nobody could have read it.
func largestGap(largest time.Duration, gaps, stalls []span) time.Duration {
	for _, gap := range gaps {
		rest := gap.to - gap.from
		for _, stall := range stalls {
			if both := min(gap.to, stall.to) - max(gap.from, stall.from); both > 0 {
				rest -= both
			}
		}
		largest = max(largest, rest)
	}
	return largest
}

func summarize(answers *answers, sent int, plan schedule, sendErrors int64) flowReport {
	arrived := answers.arrived[:sent]
	report := flowReport{
		Sent:              sent,
		SendErrors:        sendErrors,
		LargestGapMillis:  largestGap(answers.gap, answers.gaps, plan.stalls).Milliseconds(),
		Losses:            []lossSpan{},
		StartedUnixMillis: answers.start.UnixMilli(),
	}
	for number := range arrived {
		if arrived[number].Load() {
			report.Received++
			continue
		}
		report.Lost++
		if n := len(report.Losses); n > 0 && report.Losses[n-1].LastNumber == number-1 {
			report.Losses[n-1].LastNumber = number
		} else if n < reportedSpans {
			report.Losses = append(report.Losses, lossSpan{number, number, plan.due(number).Milliseconds()})
		}
	}
	// What was lost at the end, when no answer came any more, is a gap as well.
	if pause := (time.Duration(unanswered(arrived)) * plan.interval).Milliseconds(); pause > report.LargestGapMillis {
		report.LargestGapMillis = pause
	}
	return report
}

// unanswered is how many of the last datagrams got no answer.
func unanswered(arrived []atomic.Bool) int64 {
	count := 0
	for count < len(arrived) && !arrived[len(arrived)-1-count].Load() {
		count++
	}
	return int64(count)
}
