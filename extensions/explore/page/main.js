document.getElementById("app").textContent = "profcol";
