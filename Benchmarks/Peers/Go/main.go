// SPDX-License-Identifier: Apache-2.0

// Go's net/http, as a program measured like the others.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type options struct {
	style, caFile, slowURL string
	http2, cold            bool
	waiting                int
}

type item struct {
	ID       int      `json:"id"`
	Name     string   `json:"name"`
	Email    string   `json:"email"`
	Price    float64  `json:"price"`
	IsActive bool     `json:"isActive"`
	Tags     []string `json:"tags"`
}

type profile struct {
	ID        int      `json:"id"`
	Name      string   `json:"name"`
	Email     string   `json:"email"`
	Biography string   `json:"biography"`
	IsActive  bool     `json:"isActive"`
	Score     float64  `json:"score"`
	Languages []string `json:"languages"`
	Recent    []item   `json:"recent"`
	Address   struct {
		Street     string `json:"street"`
		City       string `json:"city"`
		PostalCode string `json:"postalCode"`
	} `json:"address"`
}

func fail(reason any) {
	fmt.Fprintln(os.Stderr, "net/http:", reason)
	os.Exit(1)
}

func must[T any](value T, err error) T {
	if err != nil {
		fail(err)
	}
	return value
}

func main() {
	positional, options := readArguments(os.Args[1:])
	if len(positional) < 3 {
		fail("usage: net-http get URL COUNT INFLIGHT | wait URL COUNT | decode FILE COUNT | download URL FILE | upload URL FILE")
	}
	command, target := positional[0], positional[1]
	count, _ := strconv.Atoi(positional[2])
	inFlight := count
	if command == "get" {
		inFlight = must(strconv.Atoi(positional[3]))
	}
	client := makeClient(options, inFlight)
	if options.waiting > 0 {
		hold(client, options)
	}

	switch command {
	case "get":
		runRequests(client, target, inFlight, inFlight, options)
	case "wait":
		must(get(client, strings.Replace(target, "/slow", "/held", 1), options))
	}
	start := now()
	requests, failed, received := int64(1), int64(0), int64(0)
	switch command {
	case "get", "wait":
		requests, failed, received = runRequests(client, target, count, inFlight, options)
	case "decode":
		body := must(os.ReadFile(target))
		for requests = 0; requests < int64(count); requests++ {
			received += int64(must(decode(body, options)))
		}
	case "download":
		received = download(client, target, positional[2])
	case "upload":
		received = upload(client, target, positional[2])
	}
	report(start, requests, failed, received)
	if failed > 0 {
		os.Exit(1)
	}
}

func readArguments(arguments []string) (positional []string, options options) {
	for index := 0; index < len(arguments); index++ {
		switch argument := arguments[index]; argument {
		case "--h2":
			options.http2 = true
		case "--cold":
			options.cold = true
		case "--ca":
			index++
			options.caFile = arguments[index]
		case "--style":
			index++
			options.style = arguments[index]
		case "--beside":
			options.waiting = must(strconv.Atoi(arguments[index+1]))
			options.slowURL = arguments[index+2]
			index += 2
		default:
			positional = append(positional, argument)
		}
	}
	return
}

func makeClient(options options, inFlight int) *http.Client {
	transport := &http.Transport{
		MaxIdleConns:        2*inFlight + 16,
		MaxIdleConnsPerHost: 2*inFlight + 16,
		ForceAttemptHTTP2:   options.http2,
		DisableKeepAlives:   options.cold,
		TLSClientConfig:     &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(0)},
	}
	if options.caFile != "" {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(must(os.ReadFile(options.caFile)))
	}
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

func get(client *http.Client, url string, options options) (int, error) {
	response, err := client.Get(url)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	if response.StatusCode != 200 {
		return 0, fmt.Errorf("status %d", response.StatusCode)
	}
	if options.style == "object" || options.style == "list" {
		return decode(body, options)
	}
	return len(body), nil
}

func decode(body []byte, options options) (int, error) {
	if options.style == "object" {
		var value profile
		err := json.Unmarshal(body, &value)
		return value.ID, err
	}
	var values []item
	err := json.Unmarshal(body, &values)
	return len(values), err
}

func runRequests(client *http.Client, url string, count, inFlight int, options options) (requests, failed, received int64) {
	unstarted := int64(count)
	var group sync.WaitGroup
	for index := 0; index < inFlight; index++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for atomic.AddInt64(&unstarted, -1) >= 0 {
				length, err := get(client, url, options)
				atomic.AddInt64(&received, int64(length))
				if err != nil && atomic.AddInt64(&failed, 1) == 1 {
					fmt.Fprintln(os.Stderr, "net/http:", err)
				}
			}
		}()
	}
	group.Wait()
	return int64(count), failed, received
}

func hold(client *http.Client, options options) {
	for index := 0; index < options.waiting; index++ {
		go get(client, options.slowURL+"/hold", options)
	}
	for must(get(client, options.slowURL+"/held", options)) < options.waiting {
		time.Sleep(20 * time.Millisecond)
	}
}

func download(client *http.Client, url, path string) int64 {
	response := must(client.Get(url))
	defer response.Body.Close()
	file := must(os.Create(path))
	defer file.Close()
	return must(io.Copy(file, response.Body))
}

func upload(client *http.Client, url, path string) int64 {
	file := must(os.Open(path))
	defer file.Close()
	size := must(file.Stat()).Size()
	request := must(http.NewRequest("PUT", url, file))
	request.ContentLength = size
	response := must(client.Do(request))
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		fail(response.Status)
	}
	return size
}

type clock struct {
	wall     time.Time
	cpu      float64
	resident int
}

func now() clock {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
	return clock{time.Now(), cpu, residentKiB("VmRSS:")}
}

func residentKiB(name string) int {
	status := must(os.ReadFile("/proc/self/status"))
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, name) {
			return must(strconv.Atoi(strings.Fields(line)[1]))
		}
	}
	return 0
}

func report(start clock, requests, failed, received int64) {
	end := now()
	cpu := end.cpu - start.cpu
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"program": "net/http", "requests": requests, "failed": failed, "bytes": received,
		"wall_seconds": end.wall.Sub(start.wall).Seconds(), "cpu_seconds": cpu,
		"cpu_us_per_request": cpu * 1e6 / float64(requests),
		"base_rss_kib":       start.resident, "peak_rss_kib": residentKiB("VmHWM:"),
	})
}
