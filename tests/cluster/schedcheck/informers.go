// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// factory gives the plugins informers that hold what they were given last. No API server, no goroutine and no delay
// are behind them: what replace() has returned from is what every lister and event handler of a plugin knows.
type factory struct {
	informers.SharedInformerFactory // all that no plugin in use asks for
	byType                          map[reflect.Type]*informer
}

func newFactory() *factory {
	return &factory{
		SharedInformerFactory: informers.NewSharedInformerFactory(fake.NewClientset(), 0),
		byType:                map[reflect.Type]*informer{},
	}
}

func (f *factory) Core() core.Interface       { return core.New(f, "", nil) }
func (f *factory) Storage() storage.Interface { return storage.New(f, "", nil) }

func (f *factory) InformerFor(object runtime.Object, _ internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return f.of(object)
}

func (f *factory) of(object runtime.Object) *informer {
	kind := reflect.TypeOf(object)
	if f.byType[kind] == nil {
		f.byType[kind] = &informer{indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	}
	return f.byType[kind]
}

// informer is a cache.SharedIndexInformer as far as the plugins use one.
type informer struct {
	cache.SharedIndexInformer // nil: what is not below panics
	indexer                   cache.Indexer
	handlers                  []cache.ResourceEventHandler
}

type registration struct{}

func (registration) HasSynced() bool { return true }

func (i *informer) GetStore() cache.Store                 { return i.indexer }
func (i *informer) GetIndexer() cache.Indexer             { return i.indexer }
func (i *informer) AddIndexers(more cache.Indexers) error { return i.indexer.AddIndexers(more) }
func (i *informer) HasSynced() bool                       { return true }

func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, h)
	return registration{}, nil
}

func (i *informer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (
	cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// replaceAll makes the objects all that there is of their kind. What the plugins have assumed of others is forgotten.
func replaceAll[T runtime.Object](f *factory, objects []T) error {
	var kind T
	i := f.of(kind)

	for _, old := range i.indexer.List() {
		for _, h := range i.handlers {
			h.OnDelete(old)
		}
	}
	list := make([]interface{}, len(objects))
	for n, object := range objects {
		list[n] = object
	}
	if err := i.indexer.Replace(list, ""); err != nil {
		return err
	}
	for _, object := range list {
		for _, h := range i.handlers {
			h.OnAdd(object, true)
		}
	}
	return nil
}
