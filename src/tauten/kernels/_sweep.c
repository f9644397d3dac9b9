/* All partial projections of a batch of tensors in one read of it: the compiled twin of kernels/plain.py.

   Vectors run along the rows of a sample (see _block.h). The code for each instruction set is compiled with the
   package and chosen when it is loaded, so one build runs on every machine. */

#define Py_LIMITED_API 0x030b0000 /* one build for every Python from 3.11 on */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 64  /* of samples side by side: 8 in double precision, 16 in single; no vector is longer */
#define LINE 64         /* bytes of memory that come together */
#define MAX_ORDER 16
#define GROUP 4         /* slices added up at a time */
#define NEAR_BYTES 4096 /* rows that stay in the nearest cache beside everything else */
#define AHEAD 16384     /* bytes fetched before they are needed: memory answers late */

typedef struct {
  long p, r;      /* dimension and rank */
  long left;      /* ranks of the modes before, multiplied */
  long right;     /* and of those behind: tensors in the batch that this mode is the last of */
  long rows;      /* rows in that batch */
  long place;     /* where its partial projection begins among the projections of a sample */
  const void *u;  /* factor, p x r */
  void *columns;  /* factor, as products take it */
  void *weights;  /* with a core, those of the rows for the partial projection: rows x r */
  void *batch;    /* room for products, r x rows, and for what is read behind them */
  void *slices;   /* room for slices that are summed over the modes behind */
} Mode;

typedef struct {
  int order, partials;
  int turned;           /* whether the first mode here is the last one of the samples */
  long n;               /* samples */
  long size, step;      /* numbers of a sample, and from one to the next */
  long entries;         /* of all projections of a sample */
  const void *core;     /* core tensor to contract the partial projections with, or NULL */
  const void *center;   /* tensor subtracted from each sample, or NULL */
  const void *scale;    /* factor of each sample, or NULL */
  void **out;           /* core, then one array per mode: entries x samples */
  void **places;        /* where each entry goes in them */
  void *flat;           /* room for the projections of a block of samples, and of the centre */
  void *sum;            /* room for rows of a partial projection */
  void *padded, *few;   /* room for rows that are short or few, and their products */
  void *turn;           /* room for a sample, its last mode first */
  Mode modes[MAX_ORDER];
} Plan;

#if defined(__GNUC__) && !defined(__clang__)
#define SHUFFLE __builtin_shuffle
#endif

#define JOIN_(a, b, c) a##_##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define NAME(x) JOIN(x, ISA, REAL)

#define ISA base
#define VBYTES 16
#include "_types.h"
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MANY_ISAS
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#define ISA avx2
#define VBYTES 32
#include "_types.h"
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
#define ISA avx512
#define VBYTES 64
#include "_types.h"
#pragma GCC pop_options
#endif

typedef void Run(const Plan *, const void *);

static struct {
  const char *name;
  long width; /* bytes of a vector */
  Run *run_double, *run_float;
} isa = {"base", 16, run_base_double, run_base_float};

static void choose_isa(void) {
#ifdef MANY_ISAS
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4"))
    isa.name = "avx512", isa.width = 64, isa.run_double = run_avx512_double, isa.run_float = run_avx512_float;
  else if (__builtin_cpu_supports("x86-64-v3"))
    isa.name = "avx2", isa.width = 32, isa.run_double = run_avx2_double, isa.run_float = run_avx2_float;
#endif
}

static long larger(long a, long b) { return a > b ? a : b; }

/* A piece of the memory, or while that is measured only its size. */
static void *piece(char *memory, size_t *used, long numbers, long itemsize) {
  void *found = memory ? memory + *used : NULL;
  *used += ((size_t)(numbers * itemsize) + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
  return found;
}

/* Lay out room to work in; returns its size in bytes. */
static size_t lay_out(Plan *plan, char *memory, long itemsize) {
  size_t used = 0;
  long v = BLOCK_BYTES / itemsize, padded = 0, sum = 0;
  long widths[MAX_ORDER] = {0}; /* largest slice of each mode, at any level */
  for (int k = 0; k < plan->order; k++) {
    Mode *m = plan->modes + k;
    long full = (m->p + v - 1) / v * v, width = full;
    if (m->p < v || m->rows < v) padded = larger(padded, larger(m->p, v) * larger(m->rows, v));
    sum = larger(sum, larger(m->r, m->left) * full);
    for (int j = k; j >= 0; j--) widths[j] = larger(widths[j], width *= plan->modes[j].r);
    m->columns = piece(memory, &used, full * m->r, itemsize);
    m->weights = piece(memory, &used, plan->core ? m->rows * m->r : 0, itemsize);
    m->batch = piece(memory, &used, m->r * m->rows + (k ? v * m[-1].p : 0), itemsize);
  }
  for (int k = 0; k < plan->order; k++)
    plan->modes[k].slices = piece(memory, &used, GROUP * widths[k], itemsize);
  plan->sum = piece(memory, &used, sum, itemsize);
  plan->padded = piece(memory, &used, padded, itemsize);
  plan->few = piece(memory, &used, sum, itemsize);
  plan->turn = piece(memory, &used, plan->turned ? plan->size : 0, itemsize);
  plan->flat = piece(memory, &used, (v + 1) * (plan->entries + v), itemsize);
  plan->places = piece(memory, &used, plan->entries, sizeof(void *));
  return used;
}

/* Sizes of all levels, and how many projections a sample has. */
static void measure(Plan *plan) {
  long left = 1, right = 1, before = 1;
  for (Mode *m = plan->modes; m < plan->modes + plan->order; m++)
    m->left = left, left *= m->r, m->rows = before, before *= m->p;
  plan->entries = left;
  for (Mode *m = plan->modes + plan->order - 1; m >= plan->modes; m--) {
    m->right = right, m->rows *= right, right *= m->r, m->place = plan->entries;
    if (plan->partials) plan->entries += m->p * (plan->core ? m->r : m->left * m->right);
  }
}

/* The projections of a sample are the core, then for each mode its rows: right x left x p, or r x p with a core. */
static void place(Plan *plan, long itemsize) {
  for (long e = 0; e < plan->entries; e++) plan->places[e] = (char *)plan->out[0] + e * plan->n * itemsize;
  for (int k = 0; plan->partials && k < plan->order; k++) {
    const Mode *m = plan->modes + k;
    long left = plan->core ? 1 : m->left, right = plan->core ? m->r : m->right;
    void **to = plan->places + m->place;
    for (long t = 0; t < right; t++)
      for (long l = 0; l < left; l++)
        for (long i = 0; i < m->p; i++)
          *to++ = (char *)plan->out[k + 1] + ((l * m->p + i) * right + t) * plan->n * itemsize;
  }
}

static void *plan_memory(Plan *plan, long itemsize) {
  measure(plan);
  char *memory = malloc(lay_out(plan, NULL, itemsize) + BLOCK_BYTES);
  if (!memory) return NULL;
  lay_out(plan, memory + BLOCK_BYTES - (uintptr_t)memory % BLOCK_BYTES, itemsize);
  place(plan, itemsize);
  return memory;
}

/* Arguments and their buffers, all released together. */
typedef struct {
  Py_buffer views[2 * MAX_ORDER + 8];
  int used;
} Views;

static void *view(Views *views, PyObject *array, const char *format, long size, int writable) {
  Py_buffer *v = views->views + views->used;
  if (PyObject_GetBuffer(array, v, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)))
    return NULL;
  views->used++;
  if (strcmp(v->format, format) || v->len != size * v->itemsize) {
    PyErr_SetString(PyExc_ValueError, "sweep: arrays must be contiguous, of one type and of matching sizes");
    return NULL;
  }
  return v->buf;
}

static int view_optional(Views *views, PyObject *array, const char *format, long size, const void **out) {
  if (array == Py_None) return *out = NULL, 1;
  return (*out = view(views, array, format, size, 0)) != NULL;
}

static int read_plan(PyObject *args, Views *views, Plan *plan, void **out, const void **x, int *single) {
  PyObject *tensors, *factors, *core, *center, *scale, *outs;
  if (!PyArg_ParseTuple(args, "OO!OOOO!p", &tensors, &PyTuple_Type, &factors, &core, &center, &scale,
                        &PyTuple_Type, &outs, &plan->turned))
    return 0;
  Py_buffer *v = views->views;
  if (PyObject_GetBuffer(tensors, v, PyBUF_STRIDES | PyBUF_FORMAT)) return 0;
  views->used = 1;
  *single = !strcmp(v->format, "f"), *x = v->buf;
  const char *format = *single ? "f" : "d";
  plan->order = v->ndim - 1, plan->n = v->shape[0], plan->partials = PyTuple_Size(outs) > 1, plan->out = out;
  if (strcmp(v->format, format) || plan->order < 2 || plan->order > MAX_ORDER ||
      PyTuple_Size(factors) != plan->order || (plan->partials && PyTuple_Size(outs) != plan->order + 1)) {
    PyErr_SetString(PyExc_ValueError, "sweep: needs a batch of float tensors of order 2 to 16 and a factor per mode");
    return 0;
  }
  long ranks = 1, stride = v->itemsize;
  for (int k = plan->order; k > 0; stride *= v->shape[k--])
    if (v->strides[k] != stride && v->shape[k] > 1) {
      PyErr_SetString(PyExc_ValueError, "sweep: each sample must be contiguous");
      return 0;
    }
  plan->step = v->strides[0] / v->itemsize, plan->size = stride / v->itemsize;
  if (plan->turned && v->shape[plan->order] * v->itemsize > isa.width) {
    PyErr_SetString(PyExc_ValueError, "sweep: a mode that is taken first must be shorter than a vector");
    return 0;
  }
  for (int k = 0; k < plan->order; k++) {
    Mode *m = plan->modes + k;
    PyObject *u = PyTuple_GetItem(factors, k);
    Py_buffer *vu = views->views + views->used;
    m->p = v->shape[!plan->turned ? k + 1 : k ? k : plan->order];
    if (PyObject_GetBuffer(u, vu, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)) return 0;
    views->used++;
    if (vu->ndim != 2 || vu->shape[0] != m->p || strcmp(vu->format, format)) {
      PyErr_Format(PyExc_ValueError, "sweep: factor %d must be a matrix with %ld rows of the type of the batch", k + 1, m->p);
      return 0;
    }
    m->r = vu->shape[1], m->u = vu->buf, ranks *= m->r;
  }
  if (!(out[0] = view(views, PyTuple_GetItem(outs, 0), format, ranks * plan->n, 1)) ||
      !view_optional(views, core, format, ranks, &plan->core) ||
      !view_optional(views, center, format, plan->size, &plan->center) ||
      !view_optional(views, scale, format, plan->n, &plan->scale))
    return 0;
  for (int k = 0; plan->partials && k < plan->order; k++) {
    Mode *m = plan->modes + k;
    long entries = m->p * (plan->core ? m->r : ranks / (m->r ? m->r : 1));
    if (!(out[k + 1] = view(views, PyTuple_GetItem(outs, k + 1), format, entries * plan->n, 1))) return 0;
  }
  return 1;
}

static PyObject *sweep(PyObject *self, PyObject *args) {
  (void)self;
  Plan plan;
  Views views = {.used = 0};
  void *out[MAX_ORDER + 1], *memory = NULL;
  const void *x;
  int single, ok = read_plan(args, &views, &plan, out, &x, &single);
  if (ok && !(memory = plan_memory(&plan, single ? sizeof(float) : sizeof(double)))) ok = 0, PyErr_NoMemory();
  if (ok) {
    Py_BEGIN_ALLOW_THREADS (single ? isa.run_float : isa.run_double)(&plan, x);
    Py_END_ALLOW_THREADS
  }
  free(memory);
  while (views.used) PyBuffer_Release(views.views + --views.used);
  if (!ok) return NULL;
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"sweep", sweep, METH_VARARGS,
     "sweep(tensors, factors, core, center, scale, outs, turned): fill outs, each entries x samples. If turned, "
     "factors, core and outs are those of tensors whose last mode comes first."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_sweep", .m_size = 0, .m_methods = methods};

PyMODINIT_FUNC PyInit__sweep(void) {
  choose_isa();
  PyObject *m = PyModule_Create(&module);
  if (m && (PyModule_AddStringConstant(m, "instructions", isa.name) || PyModule_AddIntConstant(m, "width", isa.width)))
    Py_CLEAR(m);
  return m;
}
