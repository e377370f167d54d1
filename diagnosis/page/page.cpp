#include "diagnosis/page/page.hpp"

#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint {
namespace {

template <class... Values>
void put(std::string& to, fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(to), format, std::forward<Values>(values)...);
}

constexpr std::string_view style = R"(
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,sans-serif;margin:0;background:var(--bg);color:var(--fg)}
main{max-width:64rem;margin:auto;padding:1rem}
h1{font-size:1.5rem;margin:.5rem 0;overflow-wrap:anywhere}h2{font-size:1.15rem;margin:2rem 0 .5rem}
p,li,pre{overflow-wrap:anywhere;max-width:48rem}pre{white-space:pre-wrap}
figure{margin:0 0 1rem}figcaption{color:var(--dim)}
.wide{overflow-x:auto}.wide svg{width:100%;min-width:40rem;height:auto;display:block}
.wide:focus-visible,button:focus-visible{outline:3px solid var(--k0);outline-offset:2px}
table{border-collapse:collapse}caption{text-align:left;color:var(--dim)}
th,td{padding:.15rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}
th.t,td.t{text-align:left}td.t{white-space:normal;overflow-wrap:anywhere;min-width:7rem}tr.b{font-weight:600}
.verdict{font-size:1.2rem}.bad{color:var(--bad)}.dim{color:var(--dim)}
.bad strong::before{content:"\26A0  "}
.keys{display:flex;flex-wrap:wrap;gap:.5rem 2rem;padding:0;list-style:none}.keys b{display:block;font-size:1.3rem}
button{font:inherit;margin:.2rem .4rem .2rem 0;padding:.2rem .7rem;color:var(--fg);background:var(--bg);
border:1px solid var(--dim);border-radius:4px}
.plot{cursor:zoom-in;overflow:hidden}
.hidden{position:absolute;width:0;height:0}
@media print{th,td{white-space:normal;padding:.1rem .3rem}table{font-size:.8rem}.wide{overflow:visible}.wide svg{min-width:0}button{display:none}figure,tr{break-inside:avoid}}
)";

// Shows a part of a plot: drag over it, or use the buttons, which exist only where scripts run.
constexpr std::string_view plot_script = R"(
function plots(){for(const plot of document.querySelectorAll("svg.plot")){
const picture=plot.ownerSVGElement,ticks=[...picture.querySelectorAll(".tick")],
left=+plot.getAttribute("x"),wide=+plot.getAttribute("width"),high=plot.getAttribute("height");
let from=0,width=1000,down=null;
const show=(f,w)=>{width=Math.min(1000,Math.max(4,w));from=Math.min(1000-width,Math.max(0,f));
plot.setAttribute("viewBox",`${from} 0 ${width} ${high}`);plot.toggleAttribute("data-part",width<1000);let last=-1e9;
for(const t of ticks){const x=left+(t.dataset.at-from)/width*wide,ok=x>=left-1&&x<=left+wide+1&&x-last>=110;
t.style.display=ok?"inline":"none";if(ok){t.setAttribute("x",x);last=x}}};
const at=e=>{const r=picture.getBoundingClientRect();
return from+((e.clientX-r.left)/r.width*picture.viewBox.baseVal.width-left)/wide*width};
plot.addEventListener("pointerdown",e=>{down=at(e)});
addEventListener("pointerup",e=>{if(down===null)return;const up=at(e),a=Math.min(down,up),b=Math.max(down,up);down=null;
if(b-a>width/100)show(a,b-a)});
plot.addEventListener("dblclick",()=>show(0,1000));
const tools=document.createElement("div");
for(const[name,act]of[["Zoom in",()=>show(from+width/4,width/2)],["Zoom out",()=>show(from-width/2,width*2)],
["Earlier",()=>show(from-width/2,width)],["Later",()=>show(from+width/2,width)],["Whole run",()=>show(0,1000)]]){
const b=document.createElement("button");b.type="button";b.textContent=name;b.addEventListener("click",act);tools.append(b)}
picture.parentElement.after(tools)}}
plots();
)";

// Replaces what the page shows by what its server has now, but not under the hands of its reader: while something in it
// has the focus, is selected or is looked at closely, or it is paused. Waits longer where the page takes long to make.
constexpr std::string_view renewing_script = R"(
let paused=false;
function pausing(){const b=document.createElement("button");b.type="button";b.textContent=paused?"Go on":"Pause";
b.addEventListener("click",()=>{paused=!paused;b.textContent=paused?"Go on":"Pause";b.blur()});
document.getElementById("state")?.append(" ",b)}
const busy=()=>paused||document.hidden||getSelection().toString()!==""||document.activeElement!==document.body||
document.querySelector("[data-part]");
async function renew(){let wait=1000;
if(!busy())try{const begin=performance.now(),answer=await fetch(location.href);
if(!answer.ok)throw 0;
const next=new DOMParser().parseFromString(await answer.text(),"text/html"),goes_on=next.querySelector("script[data-renews]");
if(!busy()){const y=scrollY;for(const s of next.querySelectorAll("script"))s.remove();
document.title=next.title;document.body.replaceChildren(...next.body.childNodes);scrollTo(0,y);
if(typeof plots==="function")plots();if(!goes_on)return;pausing()}
wait=Math.max(wait,20*(performance.now()-begin))}
catch{wait=5000;const state=document.getElementById("state");if(state)state.textContent="The server does not answer."}
setTimeout(renew,wait)}
pausing();setTimeout(renew,1000);
)";

std::string alignment_of(const PageTable& table, std::size_t column) {
    const bool is_number =
        !table.rows.empty() && column < table.rows.front().size() && table.rows.front()[column].is_number;
    return is_number ? "" : " class=\"t\"";
}

}   // namespace

std::string number_of(double value, std::string_view text) {
    return std::isfinite(value) ? fmt::format("<data value=\"{}\">{}</data>", value, printable_markup(text))
                                : printable_markup(text);
}

std::string element_of(const PageTable& table) {
    std::string html;
    const std::string caption = printable_markup(table.caption);
    put(html,
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table><caption>{0}</caption>\n<tr>",
        caption);
    for (std::size_t i = 0; i < table.titles.size(); ++i)
        put(html, "<th scope=\"col\"{}>{}</th>", alignment_of(table, i), printable_markup(table.titles[i]));
    html += "</tr>\n";
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
        html += row == table.bold_row ? "<tr class=\"b\">" : "<tr>";
        for (std::size_t i = 0; i < table.rows[row].size(); ++i) {
            const PageCell& cell = table.rows[row][i];
            put(html, "<td{}>{}</td>", alignment_of(table, i),
                cell.value ? number_of(*cell.value, cell.text) : printable_markup(cell.text));
        }
        html += "</tr>\n";
    }
    return html + "</table></div>\n";
}

std::string figure_of(const Svg& picture, std::string_view caption) {
    return fmt::format("<figure><div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\">{1}</div>"
                       "<figcaption>{0}</figcaption></figure>\n",
                       printable_markup(caption), picture.in_page());
}

std::string paragraph_of(std::string_view text, std::string_view style_name) {
    return fmt::format("<p{}>{}</p>\n", style_name.empty() ? "" : fmt::format(" class=\"{}\"", style_name),
                       printable_markup(text));
}

std::string heading_of(std::string_view text) { return fmt::format("<h2>{}</h2>\n", printable_markup(text)); }

std::string page_of(std::string_view title, std::string_view body, bool renews) {
    const std::string name = printable_markup(title);
    const bool has_plot = renews || body.find("<svg class=\"plot\"") != body.npos;   // or will have
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\"><link "
        "rel=\"icon\" href=\"data:,\"><title>{0}</title>\n{6}<style>{1}{2}</style></head>\n<body>{3}<main>\n"
        "<h1>{0}</h1>\n{4}</main>{5}{7}</body></html>\n",
        name, picture_style(), style,
        body.find("class=\"_w") == body.npos
            ? ""
            : fmt::format("<svg class=\"hidden\" aria-hidden=\"true\">{}</svg>", picture_patterns()),
        body, has_plot ? fmt::format("<script>{}</script>", plot_script) : "",
        renews ? "<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>" : "",
        renews ? fmt::format("<script data-renews>{}</script>", renewing_script) : "");
}

}   // namespace drawpoint
