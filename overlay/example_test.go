package overlay_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	"netkeep/overlay"
)

// A program hosts a service and asks itself for a page of it.
func Example() {
	ctx := context.Background()
	network, err := overlay.Open(ctx, "my-program.json")
	if err != nil {
		log.Fatal(err)
	}
	defer network.Close()

	listener, err := network.Listen("greeting")
	if err != nil {
		log.Fatal(err)
	}
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello, %s", r.RemoteAddr)
	}))

	client := &http.Client{Transport: &http.Transport{DialContext: network.DialContext}}
	resp, err := client.Get("http://greeting.ziti/")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", body)
}

// A service is a connection like any other.
func ExampleNetwork_Dial() {
	ctx := context.Background()
	network, err := overlay.Open(ctx, "my-program.json")
	if err != nil {
		log.Fatal(err)
	}
	defer network.Close()
	listener, err := network.Listen("echo")
	if err != nil {
		log.Fatal(err)
	}
	go sendBack(listener)

	conn, err := network.Dial(ctx, "echo")
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "is anybody there?")
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		log.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s said: %s\n", conn.RemoteAddr(), answer)
}

// sendBack sends everybody back what they say.
func sendBack(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // the network was closed
		}
		go func() {
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		}()
	}
}
