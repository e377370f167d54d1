#include "cli/serve/perfetto_page.hpp"

#include <fmt/format.h>

#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::cli {
namespace {

constexpr std::string_view style = R"(
:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:2rem auto;padding:0 1rem}
button{font:inherit;padding:.4rem 1rem}h1{font-size:1.4rem;overflow-wrap:anywhere}
)";

// Perfetto answers "PONG" once it listens. A browser opens a window only when its user asks for it.
constexpr std::string_view script = R"(
const perfetto="https://ui.perfetto.dev",button=document.querySelector("button"),state=document.getElementById("state");
async function open_trace(){
const ui=window.open(perfetto);
if(!ui){state.textContent="The browser did not open a window: press the button.";return}
state.textContent="Reading the recording …";
let buffer;
try{const answer=await fetch("run.pftrace");if(!answer.ok)throw new Error(answer.status);buffer=await answer.arrayBuffer()}
catch(error){state.textContent=`The recording cannot be read: ${error.message}`;return}
state.textContent="Waiting for Perfetto …";
const asking=setInterval(()=>ui.postMessage("PING",perfetto),100);
addEventListener("message",function ready(event){
if(event.source!==ui||event.data!=="PONG")return;
clearInterval(asking);removeEventListener("message",ready);
ui.postMessage({perfetto:{buffer,title:document.querySelector("h1").textContent}},perfetto);
state.textContent="Perfetto has the recording. It went from this window to that one, and to no server."})}
button.hidden=false;button.addEventListener("click",open_trace);open_trace();
)";

}   // namespace

std::string perfetto_page(std::string_view recording) {
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width,initial-scale=1\"><link rel=\"icon\" href=\"data:,\"><title>{0} in "
        "Perfetto</title>\n<style>{1}</style></head>\n<body><main><h1>{0}</h1>\n<p id=\"state\" "
        "role=\"status\">Scripts "
        "are off: save <a href=\"run.pftrace\">the recording</a> and open it at <a href=\"https://ui.perfetto.dev\">"
        "ui.perfetto.dev</a>.</p>\n<p><button type=\"button\" hidden>Open in Perfetto</button></p></main>\n"
        "<script>{2}</script></body></html>\n",
        printable_markup(recording), style, script);
}

}   // namespace drawpoint::cli
