package semaphore

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
)

// What excludes bodies from each other is the object, and clients see of the state only what
// an operation returns.
func TestTheStateOfASemaphoreIsPlainGo(t *testing.T) {
	for _, state := range []reflect.Type{reflect.TypeFor[permits](), reflect.TypeFor[bit]()} {
		for _, field := range reflect.VisibleFields(state) {
			if field.Type != reflect.TypeFor[activeobject.Queues]() && len(field.Index) == 1 {
				require.False(t, strings.HasPrefix(field.Type.PkgPath(), "sync"), "%s.%s is a %s", state, field.Name, field.Type)
			}
		}
	}
	for _, handle := range []reflect.Type{reflect.TypeFor[Semaphore](), reflect.TypeFor[Binary]()} {
		for i := range handle.NumField() {
			require.NotContains(t, []reflect.Type{reflect.TypeFor[*permits](), reflect.TypeFor[*bit]()}, handle.Field(i).Type, "%s reaches past the object", handle)
		}
	}
}
