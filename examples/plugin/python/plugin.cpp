// SPDX-License-Identifier: Apache-2.0
//
// A plug-in that calls Python: bridge.py beside it gets the op's name and the address of its
// parameters, kernels.py has the implementations. Python is loaded at the first launch, by the few
// functions of its C API that are needed, so that no version of it is built in.
//
//   PLUMB_PYTHON          the interpreter whose version, packages and virtual environment to use;
//                         default: python3
//   PLUMB_PYTHON_KERNELS  the module with the kernels; default: kernels
#include <dlfcn.h>
#include <plumb/plumb_plugin.h>

#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <mutex>
#include <stdexcept>
#include <string>

namespace {

const plumb_host* host;

// Of Python's C API, which is stable in these.
struct Python {
  using Object = void*;
  void (*SetProgramName)(const wchar_t*);
  int (*IsInitialized)();
  void (*InitializeEx)(int signals);
  void* (*SaveThread)();
  int (*Ensure)();
  void (*Release)(int);
  int (*RunSimpleString)(const char*);
  Object (*ImportModule)(const char*);
  Object (*CallMethod)(Object, const char* name, const char* format, ...);
  const char* (*AsUtf8)(Object);
  void (*DecRef)(Object);
  void (*PrintError)();
  Object bridge = nullptr;
};

// What the interpreter prints about itself: one line.
std::string ask_python(const std::string& interpreter, const std::string& expression) {
  const std::string command =
      interpreter + " -c 'import sys, sysconfig; print(" + expression + ")'";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + interpreter);
  char line[4096] = {};
  const bool answered = std::fgets(line, sizeof line, pipe) != nullptr;
  if (pclose(pipe) != 0 || !answered) throw std::runtime_error("cannot run " + interpreter);
  std::string text = line;
  text.erase(text.find_last_not_of('\n') + 1);
  return text;
}

void* open_library(const std::string& interpreter) {
  const std::string name = ask_python(interpreter, "sysconfig.get_config_var(\"INSTSONAME\")");
  const std::string folder = ask_python(interpreter, "sysconfig.get_config_var(\"LIBDIR\")");
  // Global: extension modules expect Python's symbols to be there.
  for (const std::string& path : {folder + "/" + name, name}) {
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
  }
  throw std::runtime_error(std::string("no shared Python library: ") + dlerror());
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function) throw std::runtime_error(std::string("the Python library lacks ") + name);
}

Python find_functions(void* library) {
  Python python{};
  find(library, "Py_SetProgramName", python.SetProgramName);
  find(library, "Py_IsInitialized", python.IsInitialized);
  find(library, "Py_InitializeEx", python.InitializeEx);
  find(library, "PyEval_SaveThread", python.SaveThread);
  find(library, "PyGILState_Ensure", python.Ensure);
  find(library, "PyGILState_Release", python.Release);
  find(library, "PyRun_SimpleString", python.RunSimpleString);
  find(library, "PyImport_ImportModule", python.ImportModule);
  find(library, "PyObject_CallMethod", python.CallMethod);
  find(library, "PyUnicode_AsUTF8", python.AsUtf8);
  find(library, "Py_DecRef", python.DecRef);
  find(library, "PyErr_Print", python.PrintError);
  return python;
}

std::string own_folder() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&own_folder), &info);
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1) + ".";
}

// Python as `interpreter` is: its packages, its virtual environment.
void initialize(Python& python, const std::string& interpreter) {
  static std::wstring program;  // Python keeps the address
  const std::string path = ask_python(interpreter, "sys.executable");
  program.assign(path.begin(), path.end());
  python.SetProgramName(program.c_str());
  python.InitializeEx(0);
  python.SaveThread();  // whoever calls takes the lock
}

class Locked {
 public:
  explicit Locked(const Python& python) : python_(python), state_(python.Ensure()) {}
  ~Locked() { python_.Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  const Python& python_;
  int state_;
};

Python start() {
  const char* named = std::getenv("PLUMB_PYTHON");
  const std::string interpreter = named ? named : "python3";
  Python python = find_functions(open_library(interpreter));
  if (!python.IsInitialized()) initialize(python, interpreter);
  const Locked lock(python);
  python.RunSimpleString(("import sys; sys.path.insert(0, r'" + own_folder() + "')").c_str());
  python.bridge = python.ImportModule("bridge");
  if (!python.bridge) {
    python.PrintError();
    throw std::runtime_error("bridge.py cannot be imported; standard error says why");
  }
  return python;
}

const Python& python() {
  static const Python started = start();
  return started;
}

// "0", or another status and why.
std::string call_bridge(const char* op, const void* params, bool simulated) {
  const Python& api = python();
  const Locked lock(api);
  const Python::Object answer =
      api.CallMethod(api.bridge, "launch", "sKi", op,
                     static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(params)),
                     static_cast<int>(simulated));
  if (!answer) {
    api.PrintError();
    return "3bridge.launch threw; standard error says what";
  }
  const std::string text = api.AsUtf8(answer);
  api.DecRef(answer);
  return text;
}

struct Op {
  const char* name;
  std::size_t param_bytes;
};

// On a simulated platform Python runs when the stream comes to it, as a kernel would.
template <const Op& kOp>
void kernel(const void* params) {
  const std::string answer = call_bridge(kOp.name, params, true);
  if (answer != "0") throw std::runtime_error(answer.substr(1));
}

plumb_status fail(const std::string& why) {
  host->explain(host->context, why.c_str());
  return PLUMB_LAUNCH_FAILED;
}

// On a real one it enqueues what it has to do itself.
template <const Op& kOp, typename Params>
plumb_status launch(const void* params) try {
  const plumb_stream stream = static_cast<const Params*>(params)->stream;
  const plumb_device* device = host->device(host->context, stream);
  if (!device) return fail("no device");
  if (device->simulated) {
    return host->launch(host->context, kOp.name, &kernel<kOp>, params, kOp.param_bytes, stream);
  }
  const std::string answer = call_bridge(kOp.name, params, false);
  if (answer != "0") host->explain(host->context, answer.c_str() + 1);
  return static_cast<plumb_status>(answer[0] - '0');
} catch (const std::exception& error) {
  return fail(error.what());
}

constexpr Op kNorm{"mtp_input_rms_norm", sizeof(plumb_mtp_input_rms_norm_params)};
constexpr Op kDecode{"top_k_per_row_decode", sizeof(plumb_top_k_per_row_decode_params)};
constexpr Op kPrefill{"top_k_per_row_prefill", sizeof(plumb_top_k_per_row_prefill_params)};

// One block for each row; each of its 128 threads or more adds some of the squares, the rest is a
// tree. 1 / sqrt and the divisions are the fast ones.
constexpr plumb_numerics kNormNumerics = {
    PLUMB_F32, PLUMB_F32, 128, PLUMB_F32, 4, 1, 0, PLUMB_INDICES_ANY_ORDER, PLUMB_EQUAL_KEYS_ANY};
constexpr plumb_numerics kTopKNumerics = {
    PLUMB_F32, PLUMB_F32, 1, PLUMB_F32, 0, 1, 0, PLUMB_INDICES_ANY_ORDER, PLUMB_EQUAL_KEYS_ANY};

}  // namespace

PLUMB_PLUGIN_EXPORT const plumb_plugin_table* plumb_plugin(const plumb_host* services) {
  static const plumb_op_entry entries[] = {
      {kNorm.name, &launch<kNorm, plumb_mtp_input_rms_norm_params>, kNormNumerics},
      {kDecode.name, &launch<kDecode, plumb_top_k_per_row_decode_params>, kTopKNumerics},
      {kPrefill.name, &launch<kPrefill, plumb_top_k_per_row_prefill_params>, kTopKNumerics}};
  static const plumb_plugin_table table = {PLUMB_ABI_VERSION, "python_example", "1.0", entries, 3};
  if (services->abi_version == PLUMB_ABI_VERSION) host = services;
  return &table;
}
