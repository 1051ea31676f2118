// Command clientgo checks that an API server works with client-go: it uses the server as programs do.
//
//	clientgo KUBECONFIG [CONTEXT]   runs every check against a server
//	clientgo types KINDS            writes the table of Protobuf messages; KINDS is kinds.tsv of the simulation
//
// Each check writes one line: `ok NAME`, `FAIL NAME: why` or `not supported: NAME: why`. The exit code is 1 if a check
// failed, and 2 if the checks could not begin. All objects are created in a new namespace, which is deleted at the end.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// Maximum time of one check; a check that takes longer fails.
const patience = 60 * time.Second

func main() {
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	if len(os.Args) == 3 && os.Args[1] == "types" {
		if err := writeTypes(os.Args[2], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "clientgo:", err)
			os.Exit(2)
		}
		return
	}
	failed, err := run(os.Args[1:])
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "clientgo:", err)
		os.Exit(2)
	case failed > 0:
		os.Exit(1)
	}
}

// server is the API server under test, with client-go's clients in their default configuration.
type server struct {
	config    *rest.Config
	typed     *kubernetes.Clientset
	dynamic   *dynamic.DynamicClient
	metadata  metadata.Interface
	namespace string
	asked     *requests
}

// unsupported is the error of a check that needs something which the server reports not to support.
type unsupported struct{ why string }

func (u unsupported) Error() string { return u.why }

type check struct {
	name string
	run  func(ctx context.Context, s *server) error
}

func run(args []string) (int, error) {
	if len(args) == 0 || len(args) > 2 {
		return 0, errors.New("name a kubeconfig, and a context if it is not the current one")
	}
	overrides := &clientcmd.ConfigOverrides{}
	if len(args) == 2 {
		overrides.CurrentContext = args[1]
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: args[0]}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return 0, err
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	asked := &requests{}
	config.Wrap(asked.wrap)
	s := &server{config: config, asked: asked}
	if s.typed, err = kubernetes.NewForConfig(config); err != nil {
		return 0, err
	}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return 0, err
	}
	if s.metadata, err = metadata.NewForConfig(config); err != nil {
		return 0, err
	}
	ctx := context.Background()
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "client-go-"}}
	if home, err = s.typed.CoreV1().Namespaces().Create(ctx, home, metav1.CreateOptions{}); err != nil {
		return 0, fmt.Errorf("cannot create a namespace: %w", err)
	}
	s.namespace = home.Name
	defer func() {
		_ = s.dynamic.Resource(definitions).Delete(ctx, "widgets."+s.namespace+".example.com", metav1.DeleteOptions{})
		_ = s.typed.CoreV1().Namespaces().Delete(ctx, s.namespace, metav1.DeleteOptions{})
	}()

	var all []check
	for _, group := range [][]check{
		discoveryChecks, listChecks, watchChecks, informerChecks, writeChecks, kindChecks(), subresourceChecks, workloadChecks,
	} {
		all = append(all, group...)
	}
	failed := 0
	for _, check := range all {
		switch err := attempt(ctx, check, s); {
		case err == nil:
			fmt.Println("ok", check.name)
		case errors.As(err, &unsupported{}):
			fmt.Printf("not supported: %s: %v\n", check.name, err)
		default:
			failed++
			fmt.Printf("FAIL %s: %v\n", check.name, err)
		}
	}
	return failed, nil
}

func attempt(ctx context.Context, check check, s *server) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	return check.run(ctx, s)
}

// requests records the requests to the server.
type requests struct {
	mu  sync.Mutex
	all []request
}

type request struct {
	method      string
	url         *url.URL
	contentType string
	answer      string
}

type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return tripper(func(asked *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(asked)
		seen := request{method: asked.Method, url: asked.URL, contentType: asked.Header.Get("Content-Type")}
		if err == nil {
			seen.answer = answer.Header.Get("Content-Type")
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, seen)
		return answer, err
	})
}

// since returns the requests after the first n. A check that passes the count from before gets its own requests.
func (r *requests) since(n int) []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.all[n:]...)
}

func (r *requests) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// until calls done again and again until it returns true or an error, or ctx ends; what names the condition.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
