// SPDX-License-Identifier: Apache-2.0

// A WebSocket server that sends every message back, for Benchmarks/WebSocket/measure.py: it listens on the loopback at a port
// that the system chooses, prints that, and checks nothing, so that the clients are what takes the time.
package main

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
)

const closeFrame = 0x8

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(connection)
	}
}

func serve(connection net.Conn) {
	defer connection.Close()
	reader := bufio.NewReaderSize(connection, 64<<10)
	writer := bufio.NewWriterSize(connection, 64<<10)
	request, err := http.ReadRequest(reader)
	if err != nil {
		return
	}
	sum := sha1.Sum([]byte(request.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(writer, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
	writer.Flush()
	var payload []byte
	for {
		first, length, mask, err := readHeader(reader)
		if err != nil || length > 64<<20 {
			return
		}
		if uint64(cap(payload)) < length {
			payload = make([]byte, length)
		}
		payload = payload[:length]
		if _, err := io.ReadFull(reader, payload); err != nil {
			return
		}
		unmask(payload, mask)
		writeFrame(writer, first, payload)
		// Several answers leave together, as several questions came.
		if reader.Buffered() == 0 || first&0xF == closeFrame {
			if writer.Flush() != nil || first&0xF == closeFrame {
				return
			}
		}
	}
}

func readHeader(reader io.Reader) (first byte, length uint64, mask [4]byte, err error) {
	var start [2]byte
	if _, err = io.ReadFull(reader, start[:]); err != nil {
		return
	}
	length = uint64(start[1] & 0x7F)
	switch length {
	case 126:
		var short uint16
		err = binary.Read(reader, binary.BigEndian, &short)
		length = uint64(short)
	case 127:
		err = binary.Read(reader, binary.BigEndian, &length)
	}
	if err == nil {
		_, err = io.ReadFull(reader, mask[:])
	}
	return start[0], length, mask, err
}

func unmask(payload []byte, mask [4]byte) {
	word := uint64(binary.LittleEndian.Uint32(mask[:]))
	word |= word << 32
	for len(payload) >= 8 {
		binary.LittleEndian.PutUint64(payload, binary.LittleEndian.Uint64(payload)^word)
		payload = payload[8:]
	}
	for index := range payload {
		payload[index] ^= mask[index&3]
	}
}

func writeFrame(writer *bufio.Writer, first byte, payload []byte) {
	header := []byte{first}
	switch length := len(payload); {
	case length < 126:
		header = append(header, byte(length))
	case length < 1<<16:
		header = binary.BigEndian.AppendUint16(append(header, 126), uint16(length))
	default:
		header = binary.BigEndian.AppendUint64(append(header, 127), uint64(length))
	}
	writer.Write(header)
	writer.Write(payload)
}
