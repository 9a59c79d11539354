package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

const streamTime = 60 * time.Second

// stream sends random bytes over TCP to a sink and compares the checksum that the sink answers.
func stream(args []string) error {
	if len(args) != 2 {
		return errors.New("needs HOST:PORT MIB")
	}
	mebibytes, err := strconv.Atoi(args[1])
	if err != nil || mebibytes < 1 || mebibytes > 4096 {
		return fmt.Errorf("MIB %q is not within 1..4096", args[1])
	}
	connection, err := net.DialTimeout("tcp", args[0], checkTime*2)
	if err != nil {
		return err
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(streamTime))
	block := make([]byte, 1<<20)
	_, _ = rand.Read(block)
	sum := sha256.New()
	start := time.Now()
	for i := range mebibytes {
		block[0], block[1] = byte(i), byte(i>>8)
		sum.Write(block)
		if _, err := connection.Write(block); err != nil {
			return err
		}
	}
	if err := connection.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	answer, err := io.ReadAll(connection)
	if err != nil {
		return err
	}
	took := time.Since(start)
	if want := hex.EncodeToString(sum.Sum(nil)); string(answer) != want {
		return fmt.Errorf("checksum %q came back, %q was sent", answer, want)
	}
	return printJSON(map[string]any{
		"bytes": mebibytes << 20, "millis": took.Milliseconds(),
		"megabitsPerSecond": float64(mebibytes<<23) / 1e6 / took.Seconds(),
	})
}

// fetch prints the body of an HTTP answer.
func fetch(args []string) error {
	if len(args) != 1 {
		return errors.New("needs a URL")
	}
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(args[0])
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(os.Stdout, io.LimitReader(response.Body, 1<<20))
	return err
}

// resolve prints the addresses of a name.
func resolve(args []string) error {
	if len(args) != 1 {
		return errors.New("needs a NAME")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, args[0])
	if err != nil {
		return err
	}
	return printJSON(addresses)
}
