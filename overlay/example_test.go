package overlay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"time"

	"netkeep.internal/overlay"
)

// A program hosts a service and asks itself for a page of it.
func Example() {
	ctx := context.Background()
	network, err := overlay.Open(ctx, "my-program.json")
	if err != nil {
		log.Fatal(err)
	}
	defer network.Close()

	listener, err := network.Listen(ctx, "greeting")
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

// A program enrolls when it is started for the first time.
func ExampleEnrollFile() {
	ctx := context.Background()
	err := overlay.EnrollFile(ctx, "my-program.jwt", "my-program.json")
	if err != nil && !errors.Is(err, fs.ErrExist) {
		log.Fatal(err)
	}
	network, err := overlay.Open(ctx, "my-program.json")
	if err != nil {
		log.Fatal(err)
	}
	defer network.Close()
	fmt.Println("I am", network.Name())
}

// A service is a connection like any other.
func ExampleNetwork_Dial() {
	ctx := context.Background()
	network, err := overlay.Open(ctx, "my-program.json")
	if err != nil {
		log.Fatal(err)
	}
	defer network.Close()
	listener, err := network.Listen(ctx, "echo")
	if err != nil {
		log.Fatal(err)
	}
	go sendBack(listener)

	conn, err := network.Dial(ctx, "echo", overlay.WithTimeout(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "is anybody there?")
	if err := conn.CloseWrite(); err != nil {
		log.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s said: %s\n", conn.RemoteAddr(), answer)
}

// Of two hosts of one service, a dialer chooses one by name, and gives it a word
// along.
func ExampleNetwork_Listen() {
	ctx := context.Background()
	network, err := overlay.Open(ctx, "my-program.json")
	if err != nil {
		log.Fatal(err)
	}
	defer network.Close()
	for _, name := range []string{"left", "right"} {
		listener, err := network.Listen(ctx, "echo", overlay.WithInstance(name), overlay.WithCost(10), overlay.WithPrecedence(overlay.PrecedenceRequired))
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			for {
				conn, err := listener.AcceptConn()
				if err != nil {
					return // the network was closed
				}
				fmt.Fprintf(conn, "%s heard %s", name, conn.Data())
				conn.Close()
			}
		}()
	}

	conn, err := network.Dial(ctx, "echo", overlay.WithInstance("right"), overlay.WithData([]byte("a word")))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	answer, err := io.ReadAll(conn)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", answer)
}

// The handlers of a web server know who asks, by the word of the controller.
func ExampleDialerOf() {
	ctx := context.Background()
	network, err := overlay.Open(ctx, "my-program.json")
	if err != nil {
		log.Fatal(err)
	}
	defer network.Close()
	listener, err := network.Listen(ctx, "greeting")
	if err != nil {
		log.Fatal(err)
	}
	type key struct{}
	server := &http.Server{
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			who, known := overlay.DialerOf(conn)
			if !known {
				return ctx
			}
			return context.WithValue(ctx, key{}, who)
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who, known := r.Context().Value(key{}).(overlay.Identity)
			if !known {
				http.Error(w, "nobody says who you are", http.StatusForbidden)
				return
			}
			fmt.Fprintf(w, "you are %s", who.Name)
		}),
	}
	go server.Serve(listener)

	client := &http.Client{Transport: &http.Transport{DialContext: network.DialContext}}
	resp, err := client.Get("http://greeting/")
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

// A program answers posture checks itself, and asks its user for a code.
func ExampleWithPosture() {
	ctx := context.Background()
	network, err := overlay.Open(ctx, "my-program.json", overlay.WithPosture(overlay.Posture{
		Domain:  func() string { return "corp.example.com" },
		Process: func(path string) overlay.Process { return overlay.Process{Running: path == "/usr/bin/agent"} },
		MFA: func(ctx context.Context) (code string, err error) {
			fmt.Print("One-time code: ")
			_, err = fmt.Scanln(&code)
			return code, err
		},
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer network.Close()
	fmt.Println("logged in as", network.Name())
}

// A program shows what it is connected to.
func ExampleNetwork_Events() {
	ctx := context.Background()
	network, err := overlay.Open(ctx, "my-program.json")
	if err != nil {
		log.Fatal(err)
	}
	defer network.Close()
	for event := range network.Events(ctx) {
		what := "the controller"
		if event.Router != "" {
			what = "the router " + event.Router
		}
		fmt.Println(what, "is", event.State)
		if event.Router == "" && event.State == overlay.Connected {
			break
		}
	}
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
